//! A consume queue on disk. For each message of a queue it has an entry of 20 bytes, which points to the record in
//! the commit log.
//!
//! Files hold zeroes behind their last unit. A queue that starts in the middle of its first file begins with pre-blank units.
//!
//! Source: `ConsumeQueue`, `MultiDispatch.wrapMultiDispatch`, `ConsumeQueue.multiDispatchLmqQueue`, `MixAll.isLmq`.
use super::commit_log::CommitLog;
use crate::file::{Io, ReadCounter, Segment, Segments, place};
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::message::Message;
use crate::format::properties::{MULTI_DISPATCH, MULTI_QUEUE_OFFSET};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const UNIT: u64 = UNIT_SIZE as u64;
/// Maximum bytes of a directory name that every file system allows.
const MAX_NAME_LEN: usize = 255;
/// Number of entries of one read, 80 KiB.
const BLOCK: usize = 4096;

#[derive(Clone, Debug)]
pub struct ConsumeQueue {
    topic: String,
    queue_id: i32,
    directory: PathBuf,
    segments: Segments,
    end: Option<i64>,
    counter: Option<Arc<ReadCounter>>,
}

impl ConsumeQueue {
    pub fn list(topic: &str, queue_id: i32, directory: &Path) -> Result<Self> {
        let segments = Segments::list(&[directory.to_path_buf()])?;
        Ok(Self {
            topic: topic.to_owned(),
            queue_id,
            directory: directory.to_path_buf(),
            segments,
            end: None,
            counter: None,
        })
    }

    /// Finds the end of the queue once. Entries that are appended later are ignored.
    pub fn fix_end(&mut self) -> Result<()> {
        self.end = Some(self.find_end()?);
        Ok(())
    }

    /// Makes `counter` count what readers of entries read.
    #[must_use]
    pub fn with_counter(self, counter: Arc<ReadCounter>) -> Self {
        Self { counter: Some(counter), ..self }
    }

    pub fn topic(&self) -> &str {
        &self.topic
    }
    pub fn queue_id(&self) -> i32 {
        self.queue_id
    }
    pub fn directory(&self) -> &Path {
        &self.directory
    }
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    pub fn first_offset(&self) -> i64 {
        (self.segments.start() / UNIT) as i64
    }

    /// Returns the queue offset behind the last written consume-queue entry.
    pub fn max_offset(&self) -> Result<i64> {
        self.end.map_or_else(|| self.find_end(), Ok)
    }

    /// Searches for the end of the queue, even if it is [fixed](Self::fix_end).
    pub fn find_end(&self) -> Result<i64> {
        for (index, file) in self.segments.files().iter().enumerate().rev() {
            let segment = match self.segments.open(index, Io::Pread) {
                // Retention has removed the file since the listing. It removes only full files, so the queue ends behind this
                // file.
                Err(error) if error.is_not_found() => return Ok((file.end() / UNIT) as i64),
                // A dead link. The log still has the messages of its units.
                Err(Error::Corrupt { .. }) if index > 0 => continue,
                Err(Error::Corrupt { .. }) => return Ok((file.base / UNIT) as i64),
                opened => opened?,
            };
            // Bisection is possible, because a file holds zeroes behind its last unit.
            let written = written_units(&segment, file.len / UNIT)?;
            // A file without units does not show the end, so the file before it is searched.
            if written > 0 || index == 0 {
                return Ok((file.base / UNIT + written) as i64);
            }
        }
        Ok(0)
    }

    /// Returns the commit-log offset behind the record of the last message; 0 for a queue without messages.
    pub fn max_physical_offset(&self) -> Result<u64> {
        Ok(self.last_message()?.map_or(0, |(_, unit)| unit.end()))
    }

    pub fn last_message(&self) -> Result<Option<(i64, Unit)>> {
        self.find_back(self.max_offset()?, |offset, unit| Some((offset, unit)))
    }

    /// Visits the consume-queue entries of messages before `end`, the last one first, until `visit` returns a value.
    /// Returns this value, or `None`.
    fn find_back<T>(&self, end: i64, mut visit: impl FnMut(i64, Unit) -> Option<T>) -> Result<Option<T>> {
        let mut reader = UnitReader::new(self);
        // Reads one unit at first, because the last unit is usually a message.
        let (mut at, mut count) = (end, 1);
        while let Some(file) = self.segments.files().iter().rev().find(|file| file.base < at as u64 * UNIT) {
            let file_start = file.base.div_ceil(UNIT) as i64;
            // A file may be missing just before `at`.
            let behind = at.min((file.end() / UNIT) as i64);
            let from = file_start.max(behind - count);
            let (units, _) = reader.units(from, (behind - from).max(0) as usize)?.as_chunks::<UNIT_SIZE>();
            for (index, bytes) in units.iter().enumerate().rev() {
                if let Some(unit) = Unit::decode(bytes).filter(Unit::is_message)
                    && let Some(answer) = visit(from + index as i64, unit)
                {
                    return Ok(Some(answer));
                }
            }
            // Decreases at least by one, so that the loop ends.
            (at, count) = (from.min(at - 1), BLOCK as i64);
        }
        Ok(None)
    }

    pub fn is_of(&self, message: &Message<'_>) -> bool {
        message.topic() == self.topic.as_bytes() && message.queue_id() == self.queue_id
    }

    /// Returns whether the entry at `offset` points to a message of this queue with this offset.
    pub fn is_own(&self, log: &CommitLog, offset: i64, unit: Unit) -> Result<bool> {
        if !unit.is_message() {
            return Ok(false);
        }
        let record = match log.record_at(unit.physical_offset as u64) {
            Ok(record) => record,
            Err(Error::Corrupt { .. } | Error::Invalid { .. }) => return Ok(false),
            // A recovery has cut the record off, or retention has removed it.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(Message::decode(&record).is_some_and(|message| {
            let is_own = self.is_of(&message) && message.queue_offset() == offset;
            // Multi-dispatch offsets are not compared, because a 4.9.4 broker counts from 0 again after a restart.
            let is_listed =
                || extra_queues(&message).iter().any(|(name, id, _)| (*name, *id) == (&*self.topic, self.queue_id));
            message.layout().total as i32 == unit.size && (is_own || is_listed())
        }))
    }

    /// Returns the position of the first nonzero byte behind `max_offset`, or `None`. If there is one, a hole of zeroes
    /// has misled the bisection in [`max_offset`](Self::max_offset).
    pub fn written_behind(&self, max_offset: i64) -> Result<Option<u64>> {
        let end = max_offset as u64 * UNIT;
        for (index, file) in self.segments.files().iter().enumerate().filter(|(_, file)| file.end() > end) {
            let segment = self.segments.open(index, Io::Pread)?;
            if let Some(at) = segment.first_written(end.saturating_sub(file.base), file.len)? {
                return Ok(Some(file.base + at));
            }
        }
        Ok(None)
    }

    /// Returns the queue offset of the first entry before `end` whose record still exists in a log that begins at
    /// `log_begin`; `end` if there is none.
    pub fn first_live(&self, log_begin: u64, end: i64) -> Result<i64> {
        let first = self.first_offset();
        // Usually retention has removed nothing. Without a bisection a missing file cannot mislead the search.
        let unit = UnitReader::new(self).unit(first)?.filter(Unit::is_message);
        let is_live = first < end && unit.is_some_and(|unit| unit.physical_offset as u64 >= log_begin);
        if is_live { Ok(first) } else { self.lower_bound(log_begin, end) }
    }

    /// Finds the last entry whose record starts before `physical_offset`, and the blank entries that follow it.
    /// Returns the queue offset behind them. Reads backwards from the end, because a damaged entry would mislead a
    /// bisection and hide the entries behind it.
    pub fn listed_before(&self, physical_offset: u64, max_offset: i64) -> Result<i64> {
        let mut end = max_offset;
        self.find_back(max_offset, |offset, unit| {
            let is_before = (unit.physical_offset as u64) < physical_offset;
            end = if is_before { end } else { offset };
            is_before.then_some(())
        })?;
        Ok(end)
    }

    /// Returns the queue offset of the first consume-queue entry whose record starts at or behind `physical_offset`, or
    /// `max_offset`. Blank entries are skipped.
    pub fn lower_bound(&self, physical_offset: u64, max_offset: i64) -> Result<i64> {
        let mut reader = UnitReader::new(self);
        let (mut low, mut high) = (self.first_offset(), max_offset);
        while low < high {
            let middle = low + (high - low) / 2;
            reader.load_around(middle, (low, high))?;
            // A blank unit is compared like the next message.
            let at = reader.behind_blanks(middle, high)?;
            let unit = if at < high { reader.unit(at)? } else { None };
            let is_before = unit.is_none_or(|u| !u.is_message() || (u.physical_offset as u64) < physical_offset);
            match is_before {
                true if at == high => high = middle,
                true => low = at + 1,
                false => high = middle,
            }
        }
        reader.behind_blanks(low, max_offset)
    }
}

/// Returns the number of written entries at the start of a file with room for `count`.
fn written_units(segment: &Segment, count: u64) -> Result<u64> {
    let mut bytes = Vec::new();
    let (mut low, mut high, mut block) = (0, count, 0);
    while low < high {
        // The last steps of the search are in one block, which is read at once.
        if bytes.is_empty() && high - low <= BLOCK as u64 {
            block = low;
            segment.read_into(low * UNIT, (high - low) as usize * UNIT_SIZE, &mut bytes)?;
        }
        let middle = low + (high - low) / 2;
        let unit = match bytes.get((middle - block) as usize * UNIT_SIZE..) {
            Some(bytes) if !bytes.is_empty() => Unit::decode(bytes),
            _ => unit_in(segment, middle)?,
        };
        if unit.is_some_and(|unit| unit.is_written()) { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

fn unit_in(segment: &Segment, n: u64) -> Result<Option<Unit>> {
    let mut bytes = Vec::with_capacity(UNIT_SIZE);
    segment.read_into(n * UNIT, UNIT_SIZE, &mut bytes)?;
    Ok(Unit::decode(&bytes))
}

/// Reads consume-queue entries by queue offset. Keeps the last used file open, and the entries of the last read.
#[derive(Debug)]
pub struct UnitReader<'a> {
    queue: &'a ConsumeQueue,
    open: Option<(usize, Segment)>,
    /// Position and length of the last read, in the open file.
    window: (u64, usize),
}

impl<'a> UnitReader<'a> {
    pub fn new(queue: &'a ConsumeQueue) -> Self {
        Self { queue, open: None, window: (0, 0) }
    }

    /// Reads the entries from `from` to `end` that are in the file of `middle` at once if they are few, so that those
    /// asked for next need no read.
    fn load_around(&mut self, middle: i64, (from, end): (i64, i64)) -> Result<()> {
        let segments = &self.queue.segments;
        let Some(index) = segments.find(middle as u64 * UNIT) else { return Ok(()) };
        let file = &segments.files()[index];
        self.load(from.max(file.base.div_ceil(UNIT) as i64), end.min((file.end() / UNIT) as i64))
    }

    /// Reads the entries from `from` to `end` at once if they are few, so that those asked for next need no read.
    pub fn load(&mut self, from: i64, end: i64) -> Result<()> {
        let count = usize::try_from(end - from).unwrap_or(0);
        if (1..=BLOCK).contains(&count) {
            self.units(from, count)?;
        }
        Ok(())
    }

    /// Returns the consume-queue entry at a queue offset; `None` outside of the files.
    pub fn unit(&mut self, offset: i64) -> Result<Option<Unit>> {
        Ok(Unit::decode(self.units(offset, 1)?))
    }

    /// Returns the first offset from `offset` to `end` whose consume-queue entry is not blank, or `end`.
    pub fn behind_blanks(&mut self, offset: i64, end: i64) -> Result<i64> {
        let (mut at, mut count) = (offset, 1);
        while at < end {
            let units = self.units(at, count.min((end - at) as usize))?.chunks_exact(UNIT_SIZE);
            let read = units.len();
            let blanks = units.take_while(|unit| Unit::decode(unit).is_some_and(|unit| unit.is_blank())).count();
            at += blanks as i64;
            // Without a file there are no units to skip.
            if blanks < read || read == 0 {
                return Ok(at);
            }
            count = BLOCK;
        }
        Ok(end)
    }

    /// Returns the bytes of up to `count` consume-queue entries from a queue offset on, but not beyond the end of its
    /// file.
    pub fn units(&mut self, offset: i64, count: usize) -> Result<&[u8]> {
        let at = u64::try_from(offset).unwrap_or(u64::MAX).saturating_mul(UNIT);
        let Some(index) = self.queue.segments.find(at) else { return Ok(&[]) };
        if self.open.as_ref().is_none_or(|(open, _)| *open != index) {
            self.window = (0, 0);
            self.open = match self.queue.segments.open(index, Io::Pread) {
                // Retention has removed the file since the listing, and its messages, too.
                Err(error) if error.is_not_found() => return Ok(&[]),
                // A dead link. The log still has the messages of its units.
                Err(Error::Corrupt { .. }) => return Ok(&[]),
                opened => Some((index, opened?)),
            };
        }
        let Some((_, segment)) = &mut self.open else { return Ok(&[]) };
        let (at, len) = (at - self.queue.segments.files()[index].base, count * UNIT_SIZE);
        let (from, known) = self.window;
        if at >= from && at + len as u64 <= from + known as u64 {
            let start = (at - from) as usize;
            return Ok(&segment.last_window(from, known)[start..start + len]);
        }
        self.window = (0, 0);
        let bytes = segment.window(at, len)?;
        if let Some(counter) = &self.queue.counter {
            // At the end of a file a second system call finds nothing.
            counter.add(1 + u64::from(bytes.len() < len), bytes.len() as u64);
        }
        // A truncated file may end inside a unit.
        let whole = bytes.len() / UNIT_SIZE * UNIT_SIZE;
        self.window = (at, whole);
        Ok(&bytes[..whole])
    }
}

/// Returns whether a topic can be the name of a directory in `consumequeue/`. A topic such as `..` or `/` would lead
/// out of the store.
pub fn is_directory_name(topic: &str) -> bool {
    (1..=MAX_NAME_LEN).contains(&topic.len()) && !topic.contains(['/', '\0']) && topic != "." && topic != ".."
}

/// Returns the queues of a topic that have a directory in `consumequeue/` (`DefaultMessageStore.loadConsumeQueue`).
pub fn list_queues(consume_queue_dir: &Path, topic: &str) -> Result<Vec<ConsumeQueue>> {
    let directory = consume_queue_dir.join(topic);
    let mut queues = Vec::new();
    for name in directory_names(&directory)? {
        if let Ok(queue_id) = name.parse::<i32>() {
            queues.push(ConsumeQueue::list(topic, queue_id, &directory.join(name))?);
        }
    }
    queues.sort_by_key(ConsumeQueue::queue_id);
    Ok(queues)
}

/// Returns the names of the directories in `path`, sorted; an empty list if `path` does not exist.
pub fn directory_names(path: &Path) -> Result<Vec<String>> {
    let entries = match place::entries(path) {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name
            && entry.is_directory()?
        {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

// Multi-dispatch: one record in several queues, as for light message queues (LMQ). The message names the queues in a property,
// and the store adds a property with its offset in each queue. Both stay in the record, so that the queues can be rebuilt from
// the log. A 4.9.4 broker forgets the next offsets when it restarts; here the offsets continue at the ends of the queues.

pub const LMQ: &str = "%LMQ%";

/// Returns name and queue id of each queue in `names`, the value of `INNER_MULTI_DISPATCH`. `queue_id` is that of the
/// message.
pub fn multi_dispatch_queues(names: &str, queue_id: i32) -> impl Iterator<Item = (&str, i32)> {
    // A light queue always has id 0 (`multiDispatchLmqQueue`).
    names.split(',').map(move |name| (name, if name.starts_with(LMQ) { 0 } else { queue_id }))
}

/// Returns name, queue id and offset of a stored message in each of its additional queues.
pub fn extra_queues<'a>(message: &Message<'a>) -> Vec<(&'a str, i32, i64)> {
    let text = |name| message.property(name).and_then(|value| std::str::from_utf8(value).ok());
    let (Some(names), Some(offsets)) = (text(MULTI_DISPATCH), text(MULTI_QUEUE_OFFSET)) else { return Vec::new() };
    let offsets: Vec<i64> = offsets.split(',').map_while(|offset| offset.parse().ok()).collect();
    let queues: Vec<_> = multi_dispatch_queues(names, message.queue_id()).collect();
    if queues.len() != offsets.len() {
        return Vec::new(); // A broker ignores such a message, too.
    }
    queues.into_iter().zip(offsets).map(|((name, queue_id), offset)| (name, queue_id, offset)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn queue_of(files: &[(&str, &[Unit], usize)]) -> (tempfile::TempDir, ConsumeQueue) {
        let dir = tempfile::tempdir().expect("dir");
        for (name, units, capacity) in files {
            let mut bytes: Vec<u8> = units.iter().flat_map(Unit::encode).collect();
            bytes.resize(capacity * UNIT_SIZE, 0);
            std::fs::write(dir.path().join(name), bytes).expect("written");
        }
        let queue = ConsumeQueue::list("T", 0, dir.path()).expect("listed");
        (dir, queue)
    }

    fn unit(physical_offset: i64) -> Unit {
        Unit { physical_offset, size: 100, tags_code: 0 }
    }

    #[test]
    fn the_last_written_unit_is_found_across_files() {
        let full: Vec<_> = (0..5).map(|i| unit(i * 100)).collect();
        let (_dir, queue) =
            queue_of(&[("00000000000000000000", &full, 5), ("00000000000000000100", &[unit(500), unit(600)], 5)]);
        assert_eq!((queue.first_offset(), queue.max_offset().expect("read")), (0, 7));
        let (_dir, queue) = queue_of(&[("00000000000000000000", &full, 5), ("00000000000000000100", &[], 5)]);
        assert_eq!(queue.max_offset().expect("read"), 5);
        let (_dir, queue) = queue_of(&[("00000000000000000100", &[], 5)]);
        assert_eq!((queue.first_offset(), queue.max_offset().expect("read")), (5, 5));
        let (_dir, queue) = queue_of(&[]);
        assert_eq!(queue.max_offset().expect("read"), 0);
    }

    #[test]
    fn the_lower_bound_passes_pre_blank_units() {
        let (_dir, queue) =
            queue_of(&[("00000000000000000100", &[Unit::PRE_BLANK, Unit::PRE_BLANK, unit(0), unit(100)], 5)]);
        let max = queue.max_offset().expect("read");
        assert_eq!(max, 9);
        assert_eq!([0, 1, 100, 101].map(|p| queue.lower_bound(p, max).expect("read")), [7, 8, 8, 9]);
    }

    #[test]
    fn units_that_lead_astray_hide_none_behind_them() {
        let units: Vec<_> = [0, 100, 1 << 60, 300, 400, 500, 600].map(unit).to_vec();
        let (_dir, queue) = queue_of(&[("00000000000000000000", &units, 9)]);
        assert_eq!([0, 100, 301, 500, 900].map(|p| queue.listed_before(p, 7).expect("read")), [0, 1, 4, 5, 7]);
        // One file is missing, and another file is far behind the others.
        let (_dir, queue) = queue_of(&[
            ("00000000000000000000", &units[..2], 2),
            ("00000000000000000080", &[Unit::left_out(0), unit(400)], 2),
            ("09000000000000000000", &[Unit::left_out(0)], 2),
        ]);
        let max = queue.max_offset().expect("read");
        assert_eq!(queue.last_message().expect("read"), Some((5, unit(400))));
        assert_eq!([50, 400, 401].map(|p| queue.listed_before(p, max).expect("read")), [1, 5, max]);
    }

    proptest! {
        #[test]
        fn the_lower_bound_is_found_between_blank_units(gaps in prop::collection::vec(0..7_usize, 1..30)) {
            let mut units = Vec::new();
            for (n, gap) in gaps.iter().enumerate() {
                units.extend(std::iter::repeat_n(if n == 0 { Unit::PRE_BLANK } else { Unit::left_out(0) }, *gap));
                units.push(unit(1000 + n as i64 * 100));
            }
            let (_dir, queue) = queue_of(&[("00000000000000000000", &units, units.len() + 3)]);
            let max = queue.max_offset().expect("read");
            prop_assert_eq!(max, units.len() as i64);
            for target in (950..1100 + gaps.len() as u64 * 100).step_by(50) {
                let slow = units.iter().position(|unit| unit.is_message() && unit.physical_offset as u64 >= target);
                let slow = slow.map_or(max, |offset| offset as i64);
                prop_assert_eq!(queue.lower_bound(target, max).expect("read"), slow);
            }
        }
    }

    #[test]
    fn units_end_at_the_end_of_their_file() {
        let full: Vec<_> = (0..5).map(|i| unit(i * 100)).collect();
        let (_dir, queue) = queue_of(&[("00000000000000000000", &full, 5), ("00000000000000000100", &[unit(500)], 5)]);
        let mut reader = UnitReader::new(&queue);
        assert_eq!(reader.units(3, 9).expect("read").len(), 2 * UNIT_SIZE);
        assert_eq!(reader.unit(5).expect("read"), Some(unit(500)));
        assert_eq!(reader.unit(6).expect("read"), Some(Unit::default()));
        assert_eq!(reader.unit(10).expect("read"), None);
        assert_eq!(reader.unit(-1).expect("read"), None);
    }
}
