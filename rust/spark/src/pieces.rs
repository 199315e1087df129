//! How many pieces a read of a store is cut into, a task each.
use crate::error::Result;
use rmqfast_store::scan::Piece;

/// Bytes of the log that a piece reads, about, unless the read says otherwise.
pub const PIECE_BYTES: u64 = 256 << 20;
/// A Python worker takes long to begin: with more tasks than this for each core, pieces are larger.
const TASKS_PER_CORE: u64 = 4;
const LARGEST: u64 = 4;

/// How to cut.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cut {
    /// Pieces at least, where the log can be cut so often.
    pub least: Option<u64>,
    /// Bytes of a piece, about.
    pub bytes: Option<u64>,
    /// Cores of Python workers; `None` where tasks begin at once, or nobody knows.
    pub worker_cores: Option<u64>,
}

impl Cut {
    /// The pieces of a read; `plan` gives those of so many bytes.
    ///
    /// # Errors
    /// As `plan`.
    pub fn pieces(self, plan: impl Fn(u64) -> Result<Vec<Piece>>) -> Result<Vec<Piece>> {
        let plan = |bytes| plan(bytes).map(|pieces| pieces.into_iter().filter(|p| p.from < p.end).collect::<Vec<_>>());
        let mut bytes = self.bytes.unwrap_or(PIECE_BYTES);
        let mut pieces = plan(bytes)?;
        // a size that somebody asked for is kept
        if let (Some(cores), None) = (self.worker_cores, self.bytes) {
            let times = (pieces.len() as u64).div_ceil(TASKS_PER_CORE * cores.max(1)).min(LARGEST);
            if times > 1 {
                pieces = plan(times * bytes)?;
            }
        }
        let least = self.least.unwrap_or(1);
        // a small store would be halved many times in vain before its first cut
        bytes = bytes.min(pieces.iter().map(|piece| piece.end - piece.from).sum());
        while (pieces.len() as u64) < least && bytes > 1 {
            // pieces end at files and records, so one step may not be enough; each step halves at least
            let scaled = u128::from(bytes) * pieces.len() as u128 / u128::from(least);
            bytes = (bytes / 2).min(scaled as u64).max(1);
            pieces = plan(bytes)?;
        }
        Ok(pieces)
    }
}
