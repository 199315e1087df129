//! Walks over the commit log in order, block by block, across file ends, gaps and damage.
//!
//! A block is the result of one read: bytes, and the positions of the sound records in these bytes. Unusable bytes become
//! [`Damage`](super::Damage), and the walk continues at the next sound record. Unwritten bytes end the log, unless a later file
//! holds data.
//!
//! Source: `CommitLog.recoverNormally`, `ReputMessageService.doReput`.
use super::commit_log::{CommitLog, DamageLog, FIRST_READ, NO_FILE, find_fault};
use crate::file::{Reads, Segment, mmap};
use crate::format::message::{BLANK_MAGIC, Item, Layout, MAGIC_V1, MIN_BLANK_LEN};
use crate::{Error, Result};
use memchr::memchr2_iter;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a read. A block stays in a core's cache until the columns are built.
pub const BLOCK_LEN: usize = 256 << 10;
/// Bytes by which prefetching is ahead of the parser in a mapped file.
const PREFETCH: usize = 3 << 10;
/// Number of times that an incomplete last record is read again, because a running broker may be writing it.
const TAIL_RETRIES: u32 = 3;
const TAIL_WAIT: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
pub struct RecordAt {
    /// Position of the record within its block.
    pub at: u32,
    pub layout: Layout,
}

#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    pub bytes: &'a [u8],
    pub records: &'a [RecordAt],
}

/// The state of a walk over the log. Call [`advance`](Self::advance), then [`block`](Self::block).
#[derive(Debug)]
pub struct LogWalk {
    log: Arc<CommitLog>,
    position: u64,
    end: u64,
    /// The flushed end of a log that has lost its end; 0 after the loss was reported, and for a complete log.
    lost_to: u64,
    /// Body CRCs are checked from this offset on.
    verify_from: u64,
    segment: Option<(usize, Segment)>,
    window: (u64, usize),
    /// Whether the window ends inside a sound record, whose bytes in it need no second read.
    keeps_window: bool,
    records: Vec<RecordAt>,
    blank_files: Vec<usize>,
    /// Offset of a record that looked damaged at the first read and was complete at the second, because its writer
    /// had finished meanwhile.
    completed: Option<u64>,
    retries: u32,
    max_retries: u32,
    block_len: usize,
    with_leases: bool,
    /// The [end of the log](super::last_close::LastClose::end_of_log) of a store that was closed.
    closed_end: Option<u64>,
}

pub(super) enum Stop {
    Consumed,
    /// An incomplete record. Holds its position, and the number of bytes of the whole record.
    Needs(usize, usize),
    Blank(usize),
    Unwritten,
    Broken(String),
}

impl LogWalk {
    /// Starts to read the records that begin in `[from, end)`. Checks body CRCs from `verify_from` on.
    pub fn new(log: Arc<CommitLog>, from: u64, end: u64, verify_from: u64) -> Self {
        let position = from.max(log.min_offset());
        let lost_to = log.lost_end().flatten().map_or(0, |lost| lost.end.min(end));
        Self {
            log,
            position,
            end,
            lost_to,
            verify_from,
            segment: None,
            window: (0, 0),
            keeps_window: false,
            records: Vec::new(),
            blank_files: Vec::new(),
            completed: None,
            retries: 0,
            max_retries: TAIL_RETRIES,
            block_len: BLOCK_LEN,
            with_leases: false,
            closed_end: None,
        }
    }

    #[must_use]
    pub fn with_block_len(mut self, bytes: usize) -> Self {
        self.block_len = bytes;
        self
    }

    /// Lets blocks be in maps under leases, if the store was opened so. The caller calls [`release`](Self::release) or
    /// [`keep`](Self::keep) as soon as it can, and [`check_block`](Self::check_block) after it has used a block.
    #[must_use]
    pub fn with_leases(mut self) -> Self {
        self.with_leases = true;
        self
    }

    /// Sets the end of the log of a store that was closed, so that the walk does not search the unwritten bytes behind it.
    /// A few bytes there tell the walk whether the log has grown since.
    #[must_use]
    pub fn with_closed_end(mut self, end: Option<u64>) -> Self {
        self.closed_end = end;
        self
    }

    /// Makes the walk report an incomplete record at once as damage. Used when no broker writes to the log.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.max_retries = 0;
        self
    }

    /// Returns the most that a walk over a sound log will read. Behind damage it also reads to find the next record.
    pub fn most_reads(&self) -> Result<Reads> {
        let known_end = self.closed_end.filter(|end| *end >= self.position);
        // Where the log ends is not known, so it is searched for in all that is stored.
        let is_open = known_end.is_none() && self.end >= self.log.segments().end();
        let walk_end = known_end.unwrap_or(u64::MAX).min(self.end);
        let mut all = Reads::default();
        for (index, file) in self.log.segments().files().iter().enumerate() {
            let (from, mut end) = (self.position.max(file.base), walk_end.min(file.end()));
            if from >= end {
                continue;
            }
            let segment = match self.log.open(index) {
                Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => continue,
                opened => opened?,
            };
            let (is_mapped, block) = (segment.map().is_some(), segment.block_len(self.block_len) as u64);
            if is_open {
                end = file.base + segment.end_of_data(from - file.base, file.len);
                let search = segment.most_reads_of_search(from - file.base, file.len);
                // The block in which the written bytes end is read twice.
                all =
                    all + Reads { bytes: 0, ..search } + Reads::in_blocks(block.min(file.len), block).of_map(is_mapped);
            }
            all = all + Reads::in_blocks(end - from, block).of_map(is_mapped);
        }
        if known_end.is_some_and(|end| end < self.end) {
            all = all + Reads::in_blocks(FIRST_READ as u64, FIRST_READ as u64);
        }
        Ok(all)
    }

    /// Returns the offset of the next block. At the end of the walk this is the end of the last record.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads the next block. Returns `false` at the end. A file that was removed meanwhile counts as damage, and so
    /// does a dead link; neither is an error.
    pub fn advance(&mut self, damage: &mut DamageLog) -> Result<bool> {
        self.records.clear();
        let mut needed = 0;
        while self.position < self.end && self.records.is_empty() {
            let Some(index) = self.open_segment(damage)? else { break };
            needed = self.step(index, needed, damage)?;
        }
        if self.records.is_empty() {
            self.report_lost_end(damage);
        }
        Ok(!self.records.is_empty())
    }

    fn report_lost_end(&mut self, damage: &mut DamageLog) {
        let (from, end) = (self.position, std::mem::take(&mut self.lost_to));
        if let Some(lost) = self.log.lost_end().flatten().filter(|_| from < end) {
            let reason = format!(
                "expected the commit log to end at {} or behind, as {} says, got its end",
                lost.end, lost.witness
            );
            damage.push(self.log.damage(from, end - from, reason));
        }
    }

    /// Returns the numbers of the files passed since the last call that consist of one blank record.
    pub fn take_blank_files(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.blank_files)
    }

    pub fn block(&self) -> Block<'_> {
        let bytes = self.segment.as_ref().map_or(&[][..], |(_, s)| s.last_window(self.window.0, self.window.1));
        Block { bytes, records: &self.records }
    }

    /// Fails if the block could not be read completely, so that what was read is wrong.
    pub fn check_block(&self) -> Result<()> {
        self.segment.as_ref().map_or(Ok(()), |(_, segment)| segment.check())
    }

    /// Ends a lease. The block must not be used any more.
    pub fn release(&mut self) {
        if let Some((_, segment)) = &mut self.segment {
            segment.release();
        }
    }

    /// Ends a lease. The block can still be used.
    pub fn keep(&mut self) {
        if let Some((_, segment)) = &mut self.segment {
            segment.keep(self.window.0, self.window.1);
        }
    }

    /// Opens the file that contains the position. If there is no such file, reports the gap up to the next file as
    /// damage. Returns `None` behind the last file.
    fn open_segment(&mut self, damage: &mut DamageLog) -> Result<Option<usize>> {
        loop {
            let files = self.log.segments().files();
            let Some(index) = self.log.segments().find(self.position) else {
                // An empty file has no record at which the walk could continue.
                let Some(next) = files.iter().find(|f| f.base > self.position && f.len > 0) else {
                    self.position = self.end.min(self.position);
                    return Ok(None);
                };
                let (gap, next) = (next.base - self.position, next.base);
                damage.push(self.log.damage(self.position, gap, NO_FILE));
                self.position = next;
                continue;
            };
            if self.segment.as_ref().is_some_and(|(open, _)| *open == index) {
                return Ok(Some(index));
            }
            let opened = if self.with_leases { self.log.open_for_scan(index) } else { self.log.open(index) };
            match opened {
                Ok(segment) => {
                    self.segment = Some((index, segment));
                    return Ok(Some(index));
                }
                Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => {
                    self.skip_to(files[index].end(), self.log.reason_of_absence(index), damage);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads some bytes at the position and parses the records in them. Returns the minimum number of bytes to read
    /// next.
    fn step(&mut self, index: usize, needed: usize, damage: &mut DamageLog) -> Result<usize> {
        let file = &self.log.segments().files()[index];
        let (base, len, end) = (file.base, file.len, file.end());
        let at = self.position - base;
        let Some((_, segment)) = &mut self.segment else { return Ok(0) };
        // Bytes of the last block that begin the next one.
        let keeps_window = std::mem::take(&mut self.keeps_window);
        let kept = if keeps_window { (self.window.0 + self.window.1 as u64).saturating_sub(at) as usize } else { 0 };
        let block_len = segment.block_len(self.block_len).saturating_add(kept);
        let block_len = match self.closed_end.filter(|end| *end >= self.position).map(|end| end - self.position) {
            // A few bytes show that the log has not grown since.
            Some(0) => FIRST_READ,
            rest => rest.unwrap_or(u64::MAX).min(self.end.saturating_sub(self.position)).min(block_len as u64) as usize,
        };
        // Fewer bytes do not tell a record from zeroes.
        let want = block_len.max(needed).max(MIN_BLANK_LEN).min((len - at) as usize);
        let last = Some(self.window).filter(|_| keeps_window);
        let got = segment.next_window(last, at, want)?.len();
        self.window = (at, got);
        // The file is shorter than at its listing, because somebody has truncated it.
        if got < want && got < needed.max(8) {
            let reason = format!("expected a file of {len} bytes, got {}", at + got as u64);
            self.skip_to(end, reason, damage);
            return Ok(0);
        }
        let (position, stop) = (self.position, self.parse());
        if self.leaves_lost_map() {
            self.records.clear();
            self.position = position;
            return Ok(needed);
        }
        match stop {
            Stop::Consumed => Ok(0),
            // Reads the rest of the record only if the file has room for its length.
            Stop::Needs(consumed, bytes) if at + (consumed + bytes) as u64 <= len => {
                self.keeps_window = true;
                Ok(bytes)
            }
            Stop::Needs(consumed, bytes) => {
                let reason = format!("total size at +0: expected at most {}, got {bytes}", len - at - consumed as u64);
                self.skip_damage(index, reason, damage).map(|()| 0)
            }
            // A blank record ends a file only if it reaches to the end of the file.
            Stop::Blank(size) if self.position + size as u64 >= end => {
                // The flushed end is always behind a record, never in a blank.
                if self.lost_to < end {
                    self.report_lost_end(damage);
                }
                if self.position == base {
                    self.blank_files.push(index);
                }
                self.position = end;
                Ok(0)
            }
            Stop::Blank(size) => {
                let reason = format!("blank size at +0: expected {}, got {size}", end - self.position);
                self.skip_damage(index, reason, damage).map(|()| 0)
            }
            // Only zeroes follow, so the log ends here.
            Stop::Unwritten if !self.continues(index)? => {
                self.end = self.position;
                Ok(0)
            }
            Stop::Unwritten => {
                let reason = "expected a record, got bytes that were never written".into();
                self.skip_damage(index, reason, damage).map(|()| 0)
            }
            Stop::Broken(reason) => self.skip_damage(index, reason, damage).map(|()| 0),
        }
    }

    fn parse(&mut self) -> Stop {
        let Some((_, segment)) = &self.segment else { return Stop::Consumed };
        let bytes = segment.last_window(self.window.0, self.window.1);
        let range = (self.position, self.end);
        let (at, stop) = parse(bytes, range, self.verify_from, segment.is_mapped(), &mut self.records);
        self.position += at as u64;
        stop
    }

    /// Returns whether the block could not be read, so that it must be read again, by `pread`.
    fn leaves_lost_map(&mut self) -> bool {
        self.segment.as_mut().is_some_and(|(_, segment)| segment.leave_lost_map())
    }

    /// Skips damage at the position, up to the next valid record. If the damage may be a record that another process
    /// is writing, ends the walk instead.
    fn skip_damage(&mut self, index: usize, reason: String, damage: &mut DamageLog) -> Result<()> {
        // The caller gets the records before the damage first; the next step begins at the damage.
        if !self.records.is_empty() {
            return Ok(());
        }
        let file = &self.log.segments().files()[index];
        let (base, end) = (file.base, file.end());
        let Some((_, segment)) = &mut self.segment else { return Ok(()) };
        match resync(&self.log, index, segment, self.position - base)? {
            // The writer completed the record meanwhile, so it is read again. This happens once per offset, or a file that
            // keeps changing could hold the walk for ever.
            Resync::At(_)
                if self.completed != Some(self.position)
                    && is_start(segment, self.position - base, base, end - base)? =>
            {
                self.completed = Some(self.position);
            }
            Resync::At(at) => self.skip_to(base + at, reason, damage),
            // The rest of the file belongs to another file of the log.
            Resync::OtherFile => self.skip_to(end, reason, damage),
            Resync::Nowhere(_) if self.log.continues_behind(index)? => self.skip_to(end, reason, damage),
            // The owner is still writing the record. A later read finds it.
            Resync::Nowhere(_) if self.max_retries > 0 && self.log.has_writer() => self.end = self.position,
            Resync::Nowhere(_) if self.retries < self.max_retries => {
                self.retries += 1;
                std::thread::sleep(TAIL_WAIT);
            }
            // Nobody completes the record, so its written bytes are damage and the log ends behind them.
            Resync::Nowhere(written) => {
                self.skip_to((base + written).max(self.position), reason, damage);
                self.end = self.position;
            }
        }
        Ok(())
    }

    /// Returns whether any byte behind the position was written. If so, zeroes at the position are a hole and not the
    /// end of the log.
    fn continues(&mut self, index: usize) -> Result<bool> {
        let base = self.log.segments().files()[index].base;
        let Some((_, segment)) = &mut self.segment else { return Ok(false) };
        segment.keep(self.window.0, self.window.1);
        let is_zero = || segment.last_window(self.window.0, self.window.1).iter().all(|byte| *byte == 0);
        if self.closed_end == Some(self.position) && is_zero() {
            return Ok(false);
        }
        // A mapped page would stay in the page cache, as one with data.
        segment.leave_map();
        // Without retries the caller has said that nobody writes, as in a recovery.
        let is_still = self.max_retries == 0 || !self.log.has_writer();
        let rest = self.log.first_written(index, segment, self.position - base, is_still)?;
        Ok(rest.is_some() || self.log.continues_behind(index)?)
    }

    fn skip_to(&mut self, next: u64, reason: impl Into<String>, damage: &mut DamageLog) {
        damage.push(self.log.damage(self.position, next - self.position, reason));
        self.position = next;
        self.retries = 0;
    }
}

/// Collects the valid records at the start of `bytes`, which are at offset `start` of the log, up to offset `end`.
/// Returns the length of these records and the reason for stopping.
#[inline]
pub(super) fn parse(
    bytes: &[u8],
    (start, end): (u64, u64),
    verify_from: u64,
    prefetch: bool,
    records: &mut Vec<RecordAt>,
) -> (usize, Stop) {
    let mut at = 0;
    let stop = loop {
        if at >= bytes.len() || start + at as u64 >= end {
            break Stop::Consumed;
        }
        let offset = start + at as u64;
        match Layout::decode(&bytes[at..]) {
            Ok(Item::Message(layout)) => {
                if let Some(reason) = find_fault(&bytes[at..], layout, offset, offset >= verify_from) {
                    break Stop::Broken(reason);
                }
                let next = at + layout.total as usize;
                if prefetch {
                    mmap::prefetch_range(bytes, at + PREFETCH..next + PREFETCH);
                }
                records.push(RecordAt { at: at as u32, layout });
                at = next;
            }
            Ok(Item::Partial(needed)) => break Stop::Needs(at, needed),
            Ok(Item::Blank(size)) => break Stop::Blank(size),
            // Too few bytes of the next record to tell it from zeroes.
            Ok(Item::Unwritten) if at > 0 && bytes.len() - at < MIN_BLANK_LEN => break Stop::Needs(at, MIN_BLANK_LEN),
            Ok(Item::Unwritten) => break Stop::Unwritten,
            Err(malformed) => break Stop::Broken(malformed.to_string()),
        }
    };
    (at, stop)
}

/// Bytes of the first window. The next record is usually near, so windows start small and grow to `STEP`.
const FIRST_STEP: usize = 8 << 10;
const STEP: usize = 1 << 20;
/// Overlap of two windows in bytes. It has room for the magic code and for the size of the record, which are four
/// bytes each.
const OVERLAP: usize = 8;
/// Bytes of a record that hold its lengths, except for the lengths of topic and properties.
const HEAD_LEN: usize = 128;

#[derive(Debug, PartialEq, Eq)]
pub enum Resync {
    /// A valid record or a blank record was found. Holds its position in the file.
    At(u64),
    /// Only records of another file follow, up to a blank record at the end of the file. The blank record also
    /// belongs to the other file.
    OtherFile,
    /// No valid record follows. Holds the end of the damage: of the damaged record, if its lengths are sound, or of the
    /// last nonzero byte.
    Nowhere(u64),
}

pub fn resync(log: &CommitLog, index: usize, segment: &mut Segment, from: u64) -> Result<Resync> {
    let file = &log.segments().files()[index];
    let (mut written, mut other_places) = (from, OtherPlaces::default());
    let mut at = from;
    let mut step = FIRST_STEP;
    let end = segment.end_of_data(from, file.len);
    while at < end {
        // A hole of a sparse file cannot hold a record, so the search skips it.
        at = segment.next_data(at, file.len).saturating_sub(OVERLAP as u64).max(at);
        let rest = file.len.saturating_sub(at);
        let window = segment.window(at, rest.min((step + OVERLAP) as u64) as usize)?.to_vec();
        if segment.leave_lost_map() {
            continue;
        }
        if window.is_empty() {
            break;
        }
        for candidate in candidates(&window).map(|candidate| at + candidate as u64) {
            match Start::read(segment, candidate, file.base, file.len)? {
                // The walk has already tried this position.
                Start::Record | Start::Blank if candidate <= from => {}
                Start::Blank if other_places.lead_to(candidate, from) => return Ok(Resync::OtherFile),
                Start::Record | Start::Blank => return Ok(Resync::At(candidate)),
                Start::OtherPlace(end) => other_places.add(candidate, end),
                Start::Faulty(end) if candidate == from => written = written.max(end),
                Start::Faulty(_) | Start::None => {}
            }
        }
        if let Some(last) = window.iter().rposition(|b| *b != 0) {
            // Damage ends at the last byte that is not zero. Nothing was written behind it.
            written = written.max(at + last as u64 + 1);
        }
        at += step as u64;
        step = (2 * step).min(STEP);
    }
    Ok(Resync::Nowhere(written))
}

/// Returns the positions at which a record may begin, four bytes before a magic code of V1, V2 or a blank.
fn candidates(window: &[u8]) -> impl Iterator<Item = usize> {
    let (message, blank) = (MAGIC_V1.to_be_bytes(), BLANK_MAGIC.to_be_bytes());
    memchr2_iter(message[0], blank[0], window).filter_map(move |i| {
        let magic: &[u8; 4] = window.get(i..)?.first_chunk()?;
        (magic[..3] == message[..3] || *magic == blank).then(|| i.checked_sub(4)).flatten()
    })
}

/// Returns whether a valid record, or the blank record at the end of the file, starts at position `at`. `len` is the
/// length of the file when it was listed; bytes behind it are not read.
pub fn is_start(segment: &Segment, at: u64, base: u64, len: u64) -> Result<bool> {
    Ok(matches!(Start::read(segment, at, base, len)?, Start::Record | Start::Blank))
}

enum Start {
    Record,
    Blank,
    /// A record whose field for the physical offset does not match its place. Holds the position of the record's end.
    OtherPlace(u64),
    /// A record with sound lengths and a wrong body. Holds the position of the record's end.
    Faulty(u64),
    None,
}

impl Start {
    fn read(segment: &Segment, at: u64, base: u64, len: u64) -> Result<Self> {
        let mut bytes = Vec::new();
        segment.read_into(at, len.saturating_sub(at).min(HEAD_LEN as u64) as usize, &mut bytes)?;
        let is_here = is_at(&bytes, base + at);
        let is_within = |size: usize| at + size as u64 <= len;
        let mut item = Layout::decode(&bytes);
        // The offset is checked before the rest is read, because garbage hardly ever has the right offset.
        if let Ok(Item::Partial(needed)) = item
            && is_here
            && is_within(needed)
        {
            bytes.clear();
            segment.read_into(at, needed, &mut bytes)?;
            item = Layout::decode(&bytes);
        }
        Ok(match item {
            Ok(Item::Blank(size)) if at + size as u64 == len => Self::Blank,
            Ok(Item::Message(layout)) if !is_here => Self::OtherPlace(at + u64::from(layout.total)),
            Ok(Item::Message(layout)) if find_fault(&bytes, layout, base + at, true).is_none() => Self::Record,
            Ok(Item::Message(layout)) => Self::Faulty(at + u64::from(layout.total)),
            Ok(Item::Partial(needed)) if !is_here && is_within(needed) => Self::OtherPlace(at + needed as u64),
            _ => Self::None,
        })
    }
}

/// The records with wrong offsets that were found behind damage.
#[derive(Default)]
struct OtherPlaces {
    first: Option<(u64, u64)>,
    count: usize,
}

impl OtherPlaces {
    fn add(&mut self, start: u64, end: u64) {
        self.first.get_or_insert((start, end));
        self.count += 1;
    }

    /// Returns whether these records fill the file up to the blank record. A single record that reaches from the damage
    /// to the blank record does not count, since perhaps only its offset is damaged.
    fn lead_to(&self, blank: u64, damaged: u64) -> bool {
        self.count > 1 || self.first.is_some_and(|first| first != (damaged, blank))
    }
}

fn is_at(head: &[u8], offset: u64) -> bool {
    head.get(28..36).is_some_and(|stored| stored == offset.to_be_bytes())
}

/// Returns the offset of the first valid record in file `index` at or behind `target`, or `None`.
pub fn record_behind(log: &CommitLog, index: usize, target: u64) -> Result<Option<u64>> {
    let base = log.segments().files()[index].base;
    let mut segment = log.open(index)?;
    // The search skips its own start, so it starts one byte before the target.
    let from = (target - base).saturating_sub(1);
    Ok(match resync(log, index, &mut segment, from)? {
        Resync::At(at) => Some(base + at),
        Resync::OtherFile | Resync::Nowhere(_) => None,
    })
}
