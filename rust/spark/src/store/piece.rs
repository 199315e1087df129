//! A task's share of a read of a store, as bytes.
use crate::error::{Error, Result};
use rmqfast_store::scan::{Piece, Way};
use serde_json::Value;

/// The piece as bytes, which driver and tasks carry unread.
pub fn to_bytes(piece: &Piece) -> Vec<u8> {
    encode(&to_json(piece))
}

/// The piece that bytes are.
///
/// # Errors
/// Bytes of another release, or none of a piece of a store.
pub fn of_bytes(bytes: &[u8]) -> Result<Piece> {
    of_json(decode(bytes)?).map_err(malformed_piece)
}

/// The piece as a part of another one.
pub fn to_json(piece: &Piece) -> Value {
    let Piece { way, from, end, verify_crc } = piece;
    serde_json::json!([*way == Way::Queue, from, end, verify_crc])
}

/// The inverse of [`to_json`].
///
/// # Errors
/// Another value.
pub fn of_json(json: Value) -> serde_json::Result<Piece> {
    let (is_by_queue, from, end, verify_crc) = serde_json::from_value(json)?;
    Ok(Piece { way: if is_by_queue { Way::Queue } else { Way::Log }, from, end, verify_crc })
}

/// Bytes of the log that a piece reads, about, unless the read says otherwise.
pub const PIECE_BYTES: u64 = 256 << 20;
/// A Python worker takes long to begin: with more tasks than this for each core, pieces are larger.
const TASKS_PER_CORE: u64 = 4;
const LARGEST: u64 = 4;

/// Limits for cutting a read into pieces.
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

/// The first byte of a piece: a worker of another release says so, instead of reading something else.
const VERSION: u8 = 4;

/// The bytes of a piece.
pub fn encode(piece: &Value) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(piece.to_string().as_bytes());
    bytes
}

/// Decodes a piece.
///
/// # Errors
/// Bytes of another release, or none of a piece.
pub fn decode(bytes: &[u8]) -> Result<Value> {
    // driver and executors may have different wheels installed
    match bytes.split_first() {
        Some((&VERSION, text)) => serde_json::from_slice(text).map_err(malformed_piece),
        Some((version, _)) => {
            let text =
                format!("piece: expected version {VERSION}, got {version}; driver and executors need one release");
            Err(Error::argument(text))
        }
        None => Err(Error::argument("piece: expected bytes, got none")),
    }
}

/// The error for bytes that are not what the reader's pieces are.
pub fn malformed_piece(error: serde_json::Error) -> Error {
    Error::argument(format!("piece: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::piece::TopicPiece;

    #[test]
    fn a_piece_comes_back_from_its_bytes_and_one_of_another_release_is_refused() {
        for way in [Way::Log, Way::Queue] {
            let piece = Piece { way, from: 5, end: u64::MAX, verify_crc: true };
            let mut bytes = to_bytes(&piece);
            assert_eq!(of_bytes(&bytes).expect("a piece"), piece);
            bytes[0] = 1;
            let error = of_bytes(&bytes).expect_err("another release").to_string();
            assert!(error.starts_with("piece: expected version 4, got 1"), "{error}");
        }
        let of_topic =
            TopicPiece { address: None, ranges: Vec::new(), goes_on: false, log: None, copy: None }.to_bytes();
        for bytes in [&b""[..], b"\x04", b"\x04[null]", b"\x04[false,-1,1,false]", &of_topic] {
            let error = of_bytes(bytes).expect_err("no piece of a store").to_string();
            assert!(error.starts_with("piece: "), "{error}");
        }
    }
}
