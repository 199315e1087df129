//! Reads the messages of some queues in the order of the log.
//!
//! The log is read in steps. For each step the consume-queue entries of all queues are filtered by tag hash and
//! sorted by physical offset. Then their records are read; records near each other share one read. A record that does
//! not match its entry is damage.
//!
//! Source: `DefaultMessageStore.getMessage`, `DefaultMessageFilter.isMatchedByConsumeQueue`.
use super::hits::{Hit, HitCollector};
use super::request::ScanRequest;
use crate::file::{Segment, mmap};
use crate::format::message::{Item, Layout, Message};
use crate::store::commit_log::{CommitLog, NO_FILE, find_fault};
use crate::store::consume_queue::ConsumeQueue;
use crate::store::damage::{Damage, DamageLog, listed_there};
use crate::store::log_walk::{BLOCK_LEN, Block, RecordAt};
use crate::store::multi_dispatch::LMQ;
use crate::{Error, Result};
use std::sync::Arc;

/// Maximum bytes between two records that share one read.
const NEAR: u64 = 4 << 10;
/// Number of hits by which prefetching is ahead of reading, in a mapped file.
const AHEAD: usize = 16;

/// Reads the records of hits. Call [`advance`](Self::advance), then [`block`](Self::block).
#[derive(Debug)]
pub struct QueueWalk {
    log: Arc<CommitLog>,
    queues: Arc<Vec<ConsumeQueue>>,
    collector: HitCollector,
    verify_crc: bool,
    hits: Vec<Hit>,
    next_hit: usize,
    segment: Option<(usize, Segment)>,
    bytes: Vec<u8>,
    records: Vec<RecordAt>,
    block_len: usize,
}

impl QueueWalk {
    pub fn new(
        log: Arc<CommitLog>,
        queues: Arc<Vec<ConsumeQueue>>,
        request: Arc<ScanRequest>,
        range: (u64, u64),
        verify_crc: bool,
    ) -> Result<Self> {
        let collector = HitCollector::new(queues.clone(), request, range, &log)?;
        Ok(Self {
            log,
            queues,
            collector,
            verify_crc,
            hits: Vec::new(),
            next_hit: 0,
            segment: None,
            bytes: Vec::new(),
            records: Vec::new(),
            block_len: BLOCK_LEN,
        })
    }

    /// Sets the approximate number of record bytes that a block contains.
    #[must_use]
    pub fn with_block_len(mut self, bytes: usize) -> Self {
        self.block_len = bytes;
        self
    }

    /// Reads the next block, which may be empty. Returns `false` at the end. A removed file, or a symbolic link without
    /// a target, is added to `damage` and is no error.
    pub fn advance(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.records.clear();
        self.bytes.clear();
        if self.next_hit == self.hits.len() {
            self.next_hit = 0;
            if !self.collector.next_stretch(&mut self.hits, damage)? {
                return Ok(false);
            }
        }
        self.fetch(damage)?;
        Ok(true)
    }

    pub fn block(&self) -> Block<'_> {
        let mapped = self.segment.as_ref().and_then(|(_, s)| s.map());
        Block { bytes: mapped.unwrap_or(&self.bytes), records: &self.records }
    }

    /// Reads the records of the next hits in the same file, up to the length of a block.
    fn fetch(&mut self, damage: &mut DamageLog) -> Result<()> {
        let Some(first) = self.hits.get(self.next_hit).copied() else { return Ok(()) };
        let Some(base) = self.open_segment(first.physical_offset)? else {
            // The file is missing. Report this record and continue with the next hit.
            let file = self.log.segments().find(first.physical_offset);
            let reason = file.map_or_else(|| NO_FILE.to_owned(), |index| self.log.reason_of_absence(index));
            damage.push(self.damage(first, u64::from(first.size), &reason));
            self.next_hit += 1;
            return Ok(());
        };
        let Some((index, segment)) = &self.segment else { return Ok(()) };
        let file_end = self.log.segments().files()[*index].end();
        let mut fetched = 0;
        while fetched < self.block_len && self.next_hit < self.hits.len() {
            let run = self.run_length(file_end);
            if run == 0 {
                break;
            }
            if let Some(reason) = too_long(segment, self.hits[self.next_hit], base)? {
                let hit = self.hits[self.next_hit];
                damage.push(self.damage(hit, u64::from(hit.size), &reason));
                self.next_hit += 1;
                continue;
            }
            let hits = &self.hits[self.next_hit..self.next_hit + run];
            // Not the end of the last hit: a damaged unit may point into the middle of the record before it.
            let from = hits[0].physical_offset;
            let to =
                hits.iter().map(|hit| hit.physical_offset + u64::from(hit.size)).max().unwrap_or(from).min(file_end);
            let start = match segment.map() {
                // A mapped record is used in place.
                Some(_) => (from - base) as usize,
                None => {
                    let start = self.bytes.len();
                    segment.read_into(from - base, (to - from) as usize, &mut self.bytes)?;
                    start
                }
            };
            let bytes = segment.map().unwrap_or(&self.bytes);
            if segment.is_mapped() {
                // Hits are far apart, so the processor cannot prefetch them by itself.
                prefetch(bytes, base, self.hits.get(self.next_hit + AHEAD));
            }
            for hit in hits {
                let at = start + (hit.physical_offset - from) as usize;
                match self.check(hit, bytes.get(at..).unwrap_or_default()) {
                    Ok(layout) => self.records.push(RecordAt { at: at as u32, layout }),
                    Err(reason) => damage.push(self.damage(*hit, u64::from(hit.size), &reason)),
                }
            }
            fetched += (to - from) as usize;
            self.next_hit += run;
        }
        Ok(())
    }

    /// Returns the number of next hits that share one read. They are near each other, in the same file, and together
    /// not longer than a block.
    fn run_length(&self, file_end: u64) -> usize {
        let hits = &self.hits[self.next_hit..];
        let Some(first) = hits.first().filter(|hit| hit.physical_offset < file_end) else { return 0 };
        let mut end = first.physical_offset;
        let near = |hit: &&Hit| {
            let close = hit.physical_offset <= end.saturating_add(NEAR) && hit.physical_offset < file_end;
            end = end.max(hit.physical_offset + u64::from(hit.size));
            // The first hit is always read, otherwise the walk would never advance.
            let is_first = hit.queue == first.queue && hit.queue_offset == first.queue_offset;
            let fits = hit.physical_offset - first.physical_offset + u64::from(hit.size) <= self.block_len as u64;
            is_first || (close && fits)
        };
        hits.iter().take_while(near).count().max(1)
    }

    fn open_segment(&mut self, offset: u64) -> Result<Option<u64>> {
        let Some(index) = self.log.segments().find(offset) else { return Ok(None) };
        let base = self.log.segments().files()[index].base;
        // Keep the file open, since the next hits are usually in the same file.
        if self.segment.as_ref().is_none_or(|(open, _)| *open != index) {
            self.segment = match self.log.open(index) {
                Ok(segment) => Some((index, segment)),
                Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        Ok(Some(base))
    }

    fn damage(&self, hit: Hit, length: u64, reason: &str) -> Damage {
        let queue = &self.queues[hit.queue as usize];
        let reason = listed_there(reason, queue.topic(), queue.queue_id(), hit.queue_offset);
        self.log.damage(hit.physical_offset, length, reason)
    }

    /// Checks that `bytes` begin with the record that the consume-queue entry describes.
    fn check(&self, hit: &Hit, bytes: &[u8]) -> Result<Layout, String> {
        let layout = match Layout::decode(bytes) {
            Ok(Item::Message(layout)) => layout,
            Ok(other) => return Err(format!("expected the record of a consume-queue unit, got {other:?}")),
            Err(malformed) => return Err(malformed.to_string()),
        };
        if let Some(reason) = find_fault(bytes, layout, hit.physical_offset, self.verify_crc) {
            return Err(reason);
        }
        let queue = &self.queues[hit.queue as usize];
        let (Some(message), size) = (Message::new(bytes, layout), layout.total) else { return Err(String::new()) };
        let expected = (queue.topic().as_bytes(), queue.queue_id(), hit.queue_offset, hit.size);
        let got = (message.topic(), message.queue_id(), message.queue_offset(), size);
        // Multi-dispatch queues (LMQ) list records of other topics, and have offsets of their own.
        if expected == got || (queue.topic().starts_with(LMQ) && hit.size == size) {
            return Ok(layout);
        }
        Err(format!("expected topic, queue, offset, size {}, got {}", describe(expected), describe(got)))
    }
}

/// Checks a hit that is larger than a block. If the size in the record itself differs, returns this as the reason not
/// to read the record.
fn too_long(segment: &Segment, hit: Hit, base: u64) -> Result<Option<String>> {
    // A damaged unit may claim 2 GiB, so the record's head must have the same size before all of it is read.
    if hit.size as usize <= BLOCK_LEN {
        return Ok(None);
    }
    let mut head = Vec::new();
    segment.read_into(hit.physical_offset - base, BLOCK_LEN, &mut head)?;
    Ok(match Layout::decode(&head) {
        Ok(Item::Partial(needed)) if needed == hit.size as usize => None,
        Ok(other) => {
            Some(format!("expected a record of {} bytes as its consume-queue unit says, got {other:?}", hit.size))
        }
        Err(malformed) => Some(malformed.to_string()),
    })
}

fn prefetch(bytes: &[u8], base: u64, hit: Option<&Hit>) {
    if let Some(hit) = hit {
        let at = hit.physical_offset.saturating_sub(base) as usize;
        (at..at + hit.size as usize).step_by(64).for_each(|line| mmap::prefetch(bytes, line));
    }
}

fn describe((topic, queue_id, offset, size): (&[u8], i32, i64, u32)) -> String {
    format!("{} {queue_id} {offset} {size}", String::from_utf8_lossy(topic))
}
