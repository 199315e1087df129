//! Cuts the pieces of a plan into smaller pieces of about equal size. Each piece begins at a record.
use super::piece::{Piece, Way};
use super::plan::Plan;
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::store::ConsumeQueue;
use crate::store::consume_queue::UnitReader;

/// Maximum number of parts of a piece. It protects against a damaged file name, which can make a piece look endless.
const MAX_PARTS: u64 = 1 << 14;

impl Plan {
    /// Cuts the pieces into parts of about equal size and at most `bytes`. The number of parts is a multiple of `readers`, so that the
    /// readers finish together, unless that would make the parts much smaller.
    pub fn cut(&mut self, bytes: u64, readers: u64) -> Result<()> {
        let mut pieces = Vec::new();
        let parts = |cost: u64| match cost.div_ceil(bytes.max(1)) {
            0 | 1 => 1,
            parts => parts.min(MAX_PARTS).next_multiple_of(readers.clamp(1, MAX_PARTS)).min(4 * parts),
        };
        for piece in std::mem::take(&mut self.pieces) {
            let mut from = piece.from;
            for at in self.cuts(piece, parts)? {
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

    fn cuts(&self, piece: Piece, parts: impl Fn(u64) -> u64) -> Result<Vec<u64>> {
        match piece.way {
            Way::Queue => self.cuts_by_units(piece, parts),
            Way::Log => self.cuts_by_bytes(piece, parts(piece.end - piece.from)),
        }
    }

    /// Returns physical offsets that divide the consume-queue entries of the largest queues into equal parts. The
    /// number of parts depends on the bytes to read, so a rare tag has few parts even if its messages are spread over
    /// the whole log.
    fn cuts_by_units(&self, piece: Piece, parts: impl Fn(u64) -> u64) -> Result<Vec<u64>> {
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
        // The smaller cost of the two, since a few hits cost less than all listed messages.
        let parts = parts(listed.min(self.queue_cost_bytes)) as i64;
        // Samples of the largest queues are enough to find the cuts.
        ranges.truncate(QUEUES);
        let sampled: i64 = ranges.iter().map(|(units, _, _)| units).sum();
        // Eight samples per part keep the parts about equal.
        let step = (sampled / (parts * 8)).max(1);
        let mut samples = Vec::new();
        for (units, first, queue) in ranges {
            let mut reader = UnitReader::new(queue);
            for n in (0..units).step_by(step as usize) {
                samples.extend(reader.unit(first + n)?.filter(Unit::is_message).map(|u| u.physical_offset as u64));
            }
        }
        // Each queue is in the order of the log, but the queues together are not.
        samples.sort_unstable();
        Ok((1..parts as usize).filter_map(|i| samples.get(i * samples.len() / parts as usize).copied()).collect())
    }

    fn mean_size(&self, ranges: &[(i64, i64, &ConsumeQueue)]) -> Result<u64> {
        let Some((units, first, queue)) = ranges.first() else { return Ok(1) };
        let mut reader = UnitReader::new(queue);
        let (mut sum, mut count) = (0, 0);
        // About 32 units of the largest queue are a sufficient sample.
        for n in (0..*units).step_by((*units as usize / 32).max(1)) {
            if let Some(unit) = reader.unit(first + n)?.filter(Unit::is_message) {
                sum += unit.size as u64;
                count += 1;
            }
        }
        Ok((sum / std::cmp::max(count, 1)).max(1))
    }

    /// Returns offsets at about equal distances, each of which is the start of a record. Finds them by searching the
    /// log for the magic numbers of records.
    fn cuts_by_bytes(&self, piece: Piece, parts: u64) -> Result<Vec<u64>> {
        let log = &self.sources.log;
        let len = u128::from(piece.end - piece.from);
        let (mut cuts, mut ended) = (Vec::new(), None);
        for target in (1..parts).map(|part| piece.from + (len * u128::from(part) / u128::from(parts)) as u64) {
            let Some(index) = log.segments().find(target).filter(|index| ended != Some(*index)) else { continue };
            match crate::store::resync::record_behind(log, index, target)? {
                Some(at) => cuts.push(at),
                // No record follows in this file, so its zeroes need not be searched again.
                None => ended = Some(index),
            }
        }
        // Several targets in a gap lead to the same record.
        cuts.dedup();
        Ok(cuts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::ScanRequest;
    use crate::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
    use crate::store::{MessageStore, OpenOptions};

    fn store_of(messages: usize, body: usize, file_size: u64) -> (tempfile::TempDir, MessageStore) {
        let dir = tempfile::tempdir().expect("dir");
        let options = AppendOptions { file_size, index_slots: 16, index_entries: 9_000, ..Default::default() };
        let appender = Appender::open(dir.path(), options).expect("new");
        let message = OwnedMessage { topic: "T".into(), body: vec![b'x'; body], ..Default::default() };
        appender.append(&Messages::new(vec![message; messages]), None, 0).expect("appended");
        appender.close().expect("closed");
        let store = MessageStore::open(dir.path(), &OpenOptions::default()).expect("opened");
        (dir, store)
    }

    #[test]
    fn the_zeroes_behind_a_log_are_looked_at_once() {
        let (_dir, store) = store_of(100, 1000, 256 << 20);
        let mut plan = Plan::new(&store, &ScanRequest::default(), None).expect("planned");
        // This would take minutes if each of the 16,384 cuts were searched for in the rest of the file.
        plan.cut(1, 1).expect("cut");
        assert!((1..100).contains(&plan.pieces.len()), "{}", plan.pieces.len());
    }

    #[test]
    fn pieces_are_equal_and_a_multiple_of_their_readers() {
        let (_dir, store) = store_of(4000, 100, 1 << 16);
        let request = ScanRequest { topic: Some("T".into()), ..ScanRequest::default() };
        let pieces = |way: Way, bytes: u64, readers: u64| {
            let mut plan = Plan::new(&store, &request, Some(way)).expect("planned");
            plan.cut(bytes, readers).expect("cut");
            plan.pieces.retain(|piece| !piece.verify_crc);
            plan.pieces.iter().map(|piece| piece.end - piece.from).collect::<Vec<_>>()
        };
        for way in [Way::Log, Way::Queue] {
            for (bytes, readers, count) in [(300_000, 1, 3), (300_000, 4, 4), (300_000, 1000, 12), (1 << 30, 4, 1)] {
                let lens = pieces(way, bytes, readers);
                let (least, most) = (lens.iter().min().expect("one"), lens.iter().max().expect("one"));
                assert_eq!(lens.len(), count, "{way:?} {bytes} {readers}");
                assert!(most - least <= most / 5, "{way:?} {lens:?}");
            }
        }
    }
}
