//! Copies some topics of a master's log. A filter builds a log of these topics, which is compared and appended like a
//! full copy.
//!
//! Positions in the copy differ from those in the master's log, so a [`Mark`] stores the position in the master's
//! log. At the start the last bytes before the mark are requested, and their CRC shows whether the log is still the
//! same. The part of the copy behind the mark is built again and compared.
//!
//! Source: `CommitLog.DefaultAppendMessageCallback.doAppend`.
use crate::log_copy::{BUFFER_LEN, CopyProgress, Listing, LogCopy, LogSink, make_room};
use crate::mark::{EVERY, Mark, MarkKeeper, Places};
use crate::wire::End;
use crc32fast::Hasher;
use rmqfast_store::Error;
use rmqfast_store::export::exporter::append_at;
use rmqfast_store::format::message::{Message, encode_blank, has_room};
use rmqfast_store::store::append::Appender;
use rmqfast_store::store::append::replicate::{Rest, whole_records};
use rmqfast_store::store::log_walk::{Block, RecordAt};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// A copy of some topics, and the received bytes of the master's log that are not handled yet.
#[derive(Debug)]
pub struct TopicCopy {
    filter: TopicFilter,
    log: LogCopy,
    begun_at: Mark,
    keeper: MarkKeeper,
    trail: Trail,
    places: Arc<Places>,
    file_size: u64,
    max_record: usize,
    /// Position in the master's log of the first byte of the buffer.
    start: u64,
    buffer: Vec<u8>,
    len: usize,
    records: Vec<RecordAt>,
    /// Position in the copy's log of the next record.
    place: u64,
    /// Whether the bytes before the mark were found to have the CRC of the mark.
    is_proven: bool,
    /// End of the copy's last record when the copying started.
    known_end: u64,
    last_store_ms: i64,
}

impl TopicCopy {
    /// Creates a copy of these topics below `root`. `from` is the mark's `compare_from`, or the start of the master's
    /// log if that is later. Fails with [`End::Store`], also if the copy has no mark or ends before its mark.
    pub fn new(copy: Arc<Appender>, root: &Path, topics: &[String], from: u64, max_record: usize) -> Result<Self, End> {
        let (mark, known_end) = start_of(&copy, root, from).map_err(End::Store)?;
        let file_size = copy.live().log_file_size();
        Ok(Self {
            filter: TopicFilter::new(topics, file_size),
            log: LogCopy::new(copy.clone(), root, mark.copy_end, max_record)?,
            begun_at: mark,
            keeper: MarkKeeper::new(copy, root.to_path_buf(), mark, EVERY),
            trail: Trail::new(from),
            places: Places::new(mark.position).into(),
            file_size,
            max_record,
            start: from,
            buffer: vec![0; BUFFER_LEN],
            len: 0,
            records: Vec::new(),
            place: mark.copy_end,
            // without bytes before the mark there is nothing to compare
            is_proven: from == mark.position,
            known_end,
            last_store_ms: 0,
        })
    }

    /// Returns the map from positions of the copy to positions of the master's log.
    pub fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// Returns the end of the copy's own log.
    pub fn copy_end(&self) -> u64 {
        self.log.progress().position
    }

    fn mark(&self) -> Mark {
        let (compare_from, crc) = (self.trail.from(), self.trail.crc());
        Mark { position: self.start, copy_end: self.place, compare_from, crc }
    }

    /// Checks the CRC of the received bytes before the mark, then drops these bytes.
    fn prove(&mut self) -> Result<(), End> {
        let overlap = (self.begun_at.position - self.start).min(self.len as u64) as usize;
        self.trail.add(&self.buffer[..overlap]);
        self.drop_front(overlap);
        let mark = &self.begun_at;
        // more bytes before the mark are still to come
        if self.start < mark.position {
            return Ok(());
        }
        // if retention removed a part of these bytes at the master, the CRC cannot be checked
        if self.trail.from() == mark.compare_from && self.trail.crc() != mark.crc {
            return Err(End::Diverged { at: mark.compare_from });
        }
        self.is_proven = true;
        Ok(())
    }

    /// Takes the complete records among the received bytes. Returns the number of bytes that the next record needs,
    /// or 0 if this is unknown.
    fn take_whole(&mut self, listing: Option<&Listing>) -> Result<usize, End> {
        loop {
            self.records.clear();
            let (whole, rest) = whole_records(&self.buffer[..self.len], self.start, self.file_size, &mut self.records);
            self.pass(whole, listing)?;
            match rest {
                Rest::Broken(reason) => return Err(End::Broken { at: self.start, reason }),
                Rest::Needs(needed) => return Ok(needed),
                // a file ended, and the next file continues
                Rest::Nothing if self.len > 0 => {}
                Rest::Nothing => return Ok(0),
            }
        }
    }

    /// Filters the records in the first `whole` bytes, and appends the kept records to the copy.
    fn pass(&mut self, whole: usize, listing: Option<&Listing>) -> Result<(), End> {
        let bytes = &self.buffer[..whole];
        let place = self.filter.pass(Block { bytes, records: &self.records }, self.place);
        let mut filtered = self.filter.bytes();
        while !filtered.is_empty() {
            let room = self.log.room();
            let count = room.len().min(filtered.len());
            room[..count].copy_from_slice(&filtered[..count]);
            // `log` reports positions of the copy, but users know positions of the master's log
            self.log.take(count, listing).map_err(|end| self.in_masters_terms(end))?;
            filtered = &filtered[count..];
        }
        let last = self.records.last().and_then(|l| Message::new(bytes.get(l.at as usize..)?, l.layout));
        self.last_store_ms = last.map_or(self.last_store_ms, |message| message.store_timestamp());
        self.trail.add(bytes);
        // both positions change together, so that a mark is consistent
        self.place = place;
        self.drop_front(whole);
        self.trail.record_ended(self.start);
        self.places.note(place, self.start);
        self.places.position_at(listing.map_or(place, Listing::end_of_lists));
        Ok(())
    }

    fn in_masters_terms(&self, end: End) -> End {
        match end {
            End::Diverged { at } => End::Diverged { at: self.filter.origin(at).unwrap_or(self.start) },
            other => other,
        }
    }

    fn drop_front(&mut self, count: usize) {
        self.buffer.copy_within(count..self.len, 0);
        (self.start, self.len) = (self.start + count as u64, self.len - count);
    }
}

impl LogSink for TopicCopy {
    fn room(&mut self) -> &mut [u8] {
        &mut self.buffer[self.len..]
    }

    fn take(&mut self, count: usize, listing: Option<&Listing>) -> Result<(), End> {
        self.len += count;
        if !self.is_proven {
            self.prove()?;
        }
        if !self.is_proven {
            return Ok(());
        }
        let needed = self.take_whole(listing)?;
        if self.len <= BUFFER_LEN {
            // shrinks the buffer after a large record
            self.buffer.truncate(BUFFER_LEN);
        }
        make_room(&mut self.buffer, self.len, needed, self.max_record, self.start)?;
        self.keeper.keep(self.mark()).map_err(End::Store)
    }

    fn progress(&self) -> CopyProgress {
        CopyProgress {
            position: self.start.max(self.begun_at.position),
            compared_to: self.start,
            is_compared: self.is_proven && self.place >= self.known_end,
            last_store_ms: self.last_store_ms,
        }
    }

    fn finish(&mut self) -> Result<(), End> {
        if self.is_proven { self.keeper.finish(self.mark()).map_err(End::Store) } else { Ok(()) }
    }
}

/// Returns the mark from which the copy continues, and the end of the copy's last record.
fn start_of(copy: &Appender, root: &Path, from: u64) -> Result<(Mark, u64), Error> {
    let mark = Mark::load(root)?.ok_or_else(|| Error::invalid("root", "a copy of some topics", root.display()))?;
    if !(mark.compare_from..=mark.position).contains(&from) {
        let expected = format!("{} to {}, as the copy's mark says", mark.compare_from, mark.position);
        return Err(Error::invalid("start", expected, from));
    }
    let (begin, end) = copy.live().log_bounds();
    if !(begin..=end).contains(&mark.copy_end) {
        let reason = format!("the copy is to have a record that ends at {}, and has {begin} to {end}", mark.copy_end);
        return Err(Error::Corrupt { path: root.to_path_buf(), offset: mark.copy_end, reason });
    }
    Ok((mark, copy.last_record_end()?.max(mark.copy_end)))
}

/// Builds a log of some topics from a master's log: their records in sequence, in files of the same size. Records keep their
/// queue offsets, as in an export. If a record does not fit into its file, a blank fills the file, as in RocketMQ. The same
/// log and start always give the same bytes.
#[derive(Debug)]
pub struct TopicFilter {
    topics: HashSet<Box<[u8]>>,
    file_size: u64,
    bytes: Vec<u8>,
    /// For each kept record, its position in the copy and its position in the master's log.
    moved: Vec<(u64, u64)>,
}

impl TopicFilter {
    pub fn new(topics: &[String], file_size: u64) -> Self {
        let topics = topics.iter().map(|name| name.as_bytes().into()).collect();
        Self { topics, file_size, bytes: Vec::new(), moved: Vec::new() }
    }

    /// Filters the records of a block. `place` is the position in the copy for the first record. Returns the position
    /// behind the last record.
    pub fn pass(&mut self, block: Block<'_>, mut place: u64) -> u64 {
        self.bytes.clear();
        self.moved.clear();
        for record in block.records {
            let message = block.bytes.get(record.at as usize..).and_then(|bytes| Message::new(bytes, record.layout));
            if let Some(message) = message.filter(|message| self.topics.contains(message.topic())) {
                place = self.put(&message, place);
            }
        }
        place
    }

    fn put(&mut self, message: &Message<'_>, mut place: u64) -> u64 {
        let size = u64::from(message.layout().total);
        let room = self.file_size - place % self.file_size;
        if !has_room(room, size) {
            let end = self.bytes.len() + room as usize;
            self.bytes.extend_from_slice(&encode_blank(room as u32));
            self.bytes.resize(end, 0);
            place += room;
        }
        self.moved.push((place, message.physical_offset() as u64));
        append_at(message, place as i64, &mut self.bytes);
        place + size
    }

    /// Returns the bytes of the records that the filter kept.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the position in the master's log of the record at `place` of the copy; `None` if all kept records are
    /// behind `place`.
    pub fn origin(&self, place: u64) -> Option<u64> {
        let behind = self.moved.partition_point(|(moved, _)| *moved <= place);
        self.moved[..behind].last().map(|(_, origin)| *origin)
    }
}

/// Minimum number of bytes that the CRC covers.
pub const REACH: u64 = 64 << 10;

/// CRC of the last bytes of a log, from a record to the log's end. It tells the log from another one that has other
/// bytes at the same positions. Keeps a longer and a shorter range; when the shorter has [`REACH`] bytes, it replaces
/// the longer, and a new one begins.
#[derive(Debug)]
pub struct Trail {
    older: Stretch,
    younger: Stretch,
}

#[derive(Clone, Debug)]
struct Stretch {
    from: u64,
    crc: Hasher,
}

impl Stretch {
    fn new(from: u64) -> Self {
        Self { from, crc: Hasher::new() }
    }
}

impl Trail {
    pub fn new(from: u64) -> Self {
        Self { older: Stretch::new(from), younger: Stretch::new(from) }
    }

    pub fn from(&self) -> u64 {
        self.older.from
    }

    /// Returns the CRC of the bytes since [`from`](Self::from).
    pub fn crc(&self) -> u32 {
        self.older.crc.clone().finalize()
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.older.crc.update(bytes);
        self.younger.crc.update(bytes);
    }

    /// Called when a record ends at `position`, which is the end of the added bytes. The second range may begin here.
    pub fn record_ended(&mut self, position: u64) {
        if position - self.younger.from >= REACH {
            self.older = std::mem::replace(&mut self.younger, Stretch::new(position));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reaches_back_far_enough_and_no_further_than_it_must() {
        let log: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        let (mut trail, mut at) = (Trail::new(5), 5);
        for size in (1..).map(|n| n * 7919 % 5000) {
            if at + size > log.len() {
                break;
            }
            trail.add(&log[at..at + size]);
            at += size;
            trail.record_ended(at as u64);
            let from = trail.from() as usize;
            assert_eq!(trail.crc(), crc32fast::hash(&log[from..at]));
            assert!(
                from == 5 || (REACH as usize..2 * REACH as usize + 10_000).contains(&(at - from)),
                "{from} of {at}"
            );
        }
        assert!(trail.from() > 800_000);
    }
}
