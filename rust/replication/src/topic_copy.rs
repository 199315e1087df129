//! Takes a master's log, and keeps some of its topics: a log of these is made of it, which is compared and appended as any other.
//!
//! The copy has places of its own, so a [`Mark`] says how far the master's log was taken. The master is asked for some bytes before
//! it: by their CRC its log is known again. Behind it the same bytes are made once more of what the copy has already, and compared.
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

/// A copy of some topics, and the bytes of the master's log that came and are not taken.
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
    /// Position of the buffer's first `len` bytes in the master's log.
    start: u64,
    buffer: Vec<u8>,
    len: usize,
    records: Vec<RecordAt>,
    /// Position of the next record in the copy's log.
    place: u64,
    /// Whether the bytes before the mark are those that it was made of.
    is_proven: bool,
    /// End of the copy's last record at the start.
    known_end: u64,
    last_store_ms: i64,
}

impl TopicCopy {
    /// A copy below `root` of these topics, which takes the log from `from` on: where its mark says, or where the log begins, if
    /// that is later.
    ///
    /// # Errors
    /// [`End::Store`]; among others for a copy without a mark, or one that ends before it.
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
            is_proven: from == mark.position,
            known_end,
            last_store_ms: 0,
        })
    }

    /// Places of the master's log by those of the copy.
    pub fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// End of the copy's own log.
    pub fn copy_end(&self) -> u64 {
        self.log.progress().position
    }

    fn mark(&self) -> Mark {
        let (compare_from, crc) = (self.trail.from(), self.trail.crc());
        Mark { position: self.start, copy_end: self.place, compare_from, crc }
    }

    /// Drops what stands before the mark, and proves it.
    fn prove(&mut self) -> Result<(), End> {
        let overlap = (self.begun_at.position - self.start).min(self.len as u64) as usize;
        self.trail.add(&self.buffer[..overlap]);
        self.drop_front(overlap);
        let mark = &self.begun_at;
        if self.start < mark.position {
            return Ok(());
        }
        // where retention removed a part of these bytes at the master nothing tells
        if self.trail.from() == mark.compare_from && self.trail.crc() != mark.crc {
            return Err(End::Diverged { at: mark.compare_from });
        }
        self.is_proven = true;
        Ok(())
    }

    /// Takes the whole records that came. Returns how many bytes the next one needs, if it is known.
    fn take_whole(&mut self, listing: Option<&Listing>) -> Result<usize, End> {
        loop {
            self.records.clear();
            let (whole, rest) = whole_records(&self.buffer[..self.len], self.start, self.file_size, &mut self.records);
            self.pass(whole, listing)?;
            match rest {
                Rest::Broken(reason) => return Err(End::Broken { at: self.start, reason }),
                Rest::Needs(needed) => return Ok(needed),
                // a file ended: the next one goes on
                Rest::Nothing if self.len > 0 => {}
                Rest::Nothing => return Ok(0),
            }
        }
    }

    /// Passes the first `whole` bytes, the records, through the filter, and gives the copy what that makes of them.
    fn pass(&mut self, whole: usize, listing: Option<&Listing>) -> Result<(), End> {
        let bytes = &self.buffer[..whole];
        let place = self.filter.pass(Block { bytes, records: &self.records }, self.place);
        let mut filtered = self.filter.bytes();
        while !filtered.is_empty() {
            let room = self.log.room();
            let count = room.len().min(filtered.len());
            room[..count].copy_from_slice(&filtered[..count]);
            self.log.take(count, listing).map_err(|end| self.in_masters_terms(end))?;
            filtered = &filtered[count..];
        }
        let last = self.records.last().and_then(|l| Message::new(bytes.get(l.at as usize..)?, l.layout));
        self.last_store_ms = last.map_or(self.last_store_ms, |message| message.store_timestamp());
        self.trail.add(bytes);
        // only now: the mark is to have both places or neither
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
            // behind a large record: what comes is read in small parts again
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

/// Returns the mark that a copy goes on at, and where its last record ends.
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
