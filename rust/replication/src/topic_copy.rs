//! Copies some topics of a master's log. A filter builds a log of these topics, which is compared and appended like a
//! full copy.
//!
//! Positions in the copy differ from those in the master's log, so a [`Mark`] stores the position in the master's
//! log. At the start the last bytes before the mark are requested, and their CRC shows whether the log is still the
//! same. The part of the copy behind the mark is built again and compared.
use crate::end::End;
use crate::listing::Listing;
use crate::log_copy::{BUFFER_LEN, LogCopy};
use crate::log_sink::make_room;
use crate::log_sink::{CopyProgress, LogSink};
use crate::mark::Mark;
use crate::mark::{EVERY, MarkKeeper};
use crate::places::Places;
use crate::topic_filter::TopicFilter;
use crate::trail::Trail;
use rmqfast_store::Error;
use rmqfast_store::format::message::Message;
use rmqfast_store::store::append::Appender;
use rmqfast_store::store::append::replicate::{Rest, whole_records};
use rmqfast_store::store::log_walk::{Block, RecordAt};
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
    /// log if that is later.
    ///
    /// # Errors
    /// [`End::Store`], also for a copy without a mark, or that ends before its mark.
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
