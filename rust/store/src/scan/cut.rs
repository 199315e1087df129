//! Cutting a plan: pieces of about so many bytes, each beginning at a record.
use super::plan::{Piece, Plan, Way};
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::store::ConsumeQueue;
use crate::store::consume_queue::UnitReader;

/// Pieces of a file, or of all queues: a damaged name must not ask for billions.
const MAX_PARTS: u64 = 1 << 14;

impl Plan {
    /// Cuts the pieces so that each has about `bytes` bytes to read, at records.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn cut(&mut self, bytes: u64) -> Result<()> {
        let mut pieces = Vec::new();
        for piece in std::mem::take(&mut self.pieces) {
            let mut from = piece.from;
            for at in self.cuts(piece, bytes.max(1))? {
                if at > from && at < piece.end {
                    pieces.push(Piece { from, end: at, ..piece });
                    from = at;
                }
            }
            pieces.push(Piece { from, ..piece });
        }
        self.pieces = pieces;
        Ok(())
    }

    fn cuts(&self, piece: Piece, bytes: u64) -> Result<Vec<u64>> {
        match piece.way {
            Way::Queue => self.cuts_by_units(piece, bytes),
            Way::Log => self.cuts_by_bytes(piece, bytes),
        }
    }

    /// Physical offsets that split what the largest queues list into equal parts: as many as there are bytes to read. A rare
    /// tag has few, however much log its messages are spread over.
    fn cuts_by_units(&self, piece: Piece, bytes: u64) -> Result<Vec<u64>> {
        const QUEUES: usize = 8;
        let mut ranges = Vec::new();
        for queue in self.sources.queues.iter() {
            let max = queue.max_offset()?;
            let (first, last) = (queue.lower_bound(piece.from, max)?, queue.lower_bound(piece.end, max)?);
            ranges.push((last - first, first, queue));
        }
        ranges.sort_by_key(|(units, _, _)| std::cmp::Reverse(*units));
        let units: i64 = ranges.iter().map(|(units, _, _)| units).sum();
        let listed = (units as u64).saturating_mul(self.mean_size(&ranges)?);
        let parts = listed.min(self.queue_cost_bytes) / bytes;
        let parts = parts.clamp(1, MAX_PARTS) as i64;
        ranges.truncate(QUEUES);
        let looked_at: i64 = ranges.iter().map(|(units, _, _)| units).sum();
        let step = (looked_at / (parts * 8)).max(1);
        let mut samples = Vec::new();
        for (units, first, queue) in ranges {
            let mut reader = UnitReader::new(queue);
            for n in (0..units).step_by(step as usize) {
                samples.extend(reader.unit(first + n)?.filter(Unit::is_message).map(|u| u.physical_offset as u64));
            }
        }
        samples.sort_unstable();
        Ok((1..parts as usize).filter_map(|i| samples.get(i * samples.len() / parts as usize).copied()).collect())
    }

    fn mean_size(&self, ranges: &[(i64, i64, &ConsumeQueue)]) -> Result<u64> {
        let Some((units, first, queue)) = ranges.first() else { return Ok(1) };
        let mut reader = UnitReader::new(queue);
        let (mut sum, mut count) = (0, 0);
        for n in (0..*units).step_by((*units as usize / 32).max(1)) {
            if let Some(unit) = reader.unit(first + n)?.filter(Unit::is_message) {
                sum += unit.size as u64;
                count += 1;
            }
        }
        Ok((sum / std::cmp::max(count, 1)).max(1))
    }

    /// Starts of files, and within a file records that the largest queue lists or that stand behind a found magic.
    fn cuts_by_bytes(&self, piece: Piece, bytes: u64) -> Result<Vec<u64>> {
        let mut cuts = Vec::new();
        let log = &self.sources.log;
        for (index, file) in log.segments().files().iter().enumerate() {
            if file.end() <= piece.from || file.base >= piece.end {
                continue;
            }
            cuts.push(file.base);
            let parts = file.len.div_ceil(bytes).min(MAX_PARTS);
            for wanted in (1..parts).map(|part| file.base + part * (file.len / parts)) {
                if wanted > piece.from && wanted < piece.end {
                    let Some(cut) = crate::store::resync::record_behind(log, index, wanted)? else { break };
                    cuts.push(cut);
                }
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        Ok(cuts)
    }
}
