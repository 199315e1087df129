//! The rules of a pull. They decide which consume-queue entries are read, when the pull ends, and its status. A
//! [`PullSource`] provides entries and records, from the files of a store or from a store that this process appends
//! to.
//!
//! Source: `DefaultMessageStore.getMessage`, `isTheBatchFull`, `DefaultMessageStore.isTheBatchFull`, `checkInDiskByCommitOffset`,
//! `MessageStoreConfig`.
use crate::Result;
use crate::format::consume_queue::{UNIT_SIZE, Unit, is_ext_address};

/// Number of consume-queue entries in 16,000 bytes. A pull reads at most this many, or as many as it may return
/// messages if that is more.
const UNITS: usize = 16_000 / UNIT_SIZE;

/// Gives a pull access to a queue and to its log.
pub trait PullSource {
    fn bounds(&self) -> (i64, i64);
    /// Returns the number of entries in a queue file, or `None` if the queue has no files.
    fn units_per_file(&self) -> Option<i64>;
    /// Returns the entry at a queue offset, or `None` in a hole.
    fn unit(&mut self, offset: i64) -> Result<Option<Unit>>;
    /// Returns the queue offset at which the pull continues, if there is a hole at `offset`.
    fn behind_hole(&mut self, offset: i64) -> i64;
    /// Returns whether the filter may match a message with this tag hash.
    fn matches_code(&self, tags_code: i64) -> bool;
    /// Returns whether the filter has used up its budget of computing time. If so, the pull ends.
    fn is_spent(&self) -> bool {
        false
    }
    /// Called for an invalid entry, and for an entry that is skipped because its log file is missing.
    fn skip(&mut self, _queue_offset: i64, _unit: Unit) {}
    fn fetch(&mut self, queue_offset: i64, unit: Unit) -> Result<PullStop>;
}

/// The result of fetching the message of a consume-queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullStop {
    /// The message was added to the result. Holds the length of its record.
    Record(usize),
    Unmatched,
    /// The message is missing. An offset means that all messages before this offset of the log are missing, too.
    Gone(Option<i64>),
}

#[derive(Clone, Copy, Debug)]
pub struct Pull {
    pub max_messages: usize,
    pub limits: GetLimits,
    pub log_end: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullResult {
    pub status: GetMessageStatus,
    pub next_begin_offset: i64,
    pub min_offset: i64,
    pub max_offset: i64,
    pub messages: usize,
    /// Bytes of the records. The sum wraps around at 32 bits, as in Java.
    pub bytes: i32,
    /// Whether a broker would send the next pull to a slave, because the last message is far behind the log's end.
    pub suggest_pulling_from_slave: bool,
}

impl Pull {
    pub fn run(&self, source: &mut impl PullSource, offset: i64) -> Result<PullResult> {
        let (min_offset, max_offset) = source.bounds();
        let mut run = Run::default();
        let (status, next_begin_offset) = match refuse(source, offset)? {
            Some(refusal) => refusal,
            None => {
                let next = run.read(self, source, offset)?;
                (run.status, next)
            }
        };
        Ok(PullResult {
            status,
            next_begin_offset,
            min_offset,
            max_offset,
            messages: run.messages,
            bytes: run.bytes,
            suggest_pulling_from_slave: run.last_offset.is_some_and(|at| self.limits.is_in_disk(at, self.log_end)),
        })
    }
}

/// Returns the status and the next offset if there is no message to read at `offset`.
fn refuse(source: &mut impl PullSource, offset: i64) -> Result<Option<(GetMessageStatus, i64)>> {
    use GetMessageStatus::{NoMessageInQueue, OffsetFoundNull, OffsetOverflowBadly, OffsetOverflowOne, OffsetTooSmall};
    let (min, max) = source.bounds();
    Ok(match offset {
        _ if max == 0 => Some((NoMessageInQueue, 0)),
        _ if offset < min => Some((OffsetTooSmall, min)),
        // The consumer has read all messages and waits for the next.
        _ if offset == max => Some((OffsetOverflowOne, offset)),
        _ if offset > max => Some((OffsetOverflowBadly, max)),
        _ if source.unit(offset)?.is_none() => Some((OffsetFoundNull, source.behind_hole(offset))),
        _ => None,
    })
}

/// Returns the start of the log file that follows the file of `physical_offset` (`CommitLog.rollNextFile`).
pub fn behind_file(physical_offset: u64, file_size: u64) -> i64 {
    (physical_offset / file_size).saturating_add(1).saturating_mul(file_size).min(i64::MAX as u64) as i64
}

#[derive(Debug)]
struct Run {
    status: GetMessageStatus,
    messages: usize,
    bytes: i32,
    /// Physical offset in the last entry that was read.
    last_offset: Option<i64>,
    /// Messages before this physical offset are skipped, because their log file is missing.
    skip_until: i64,
}

impl Default for Run {
    fn default() -> Self {
        let status = GetMessageStatus::NoMatchedMessage;
        Self { status, messages: 0, bytes: 0, last_offset: None, skip_until: 0 }
    }
}

impl Run {
    /// Reads entries up to the end of their file, or to a hole. Returns the next queue offset.
    #[inline]
    fn read(&mut self, pull: &Pull, source: &mut impl PullSource, offset: i64) -> Result<i64> {
        // As in Java, a pull ends at the end of its queue file, and `next_begin_offset` is in the next file.
        let file_end = source.units_per_file().map_or(i64::MAX, |units| (offset / units + 1).saturating_mul(units));
        // `maxFilterMessageCount`: a filter that matches nothing must not read a whole queue in one pull.
        let most = offset.saturating_add(UNITS.max(pull.max_messages) as i64);
        let end = file_end.min(source.bounds().1).min(most);
        for at in offset..end {
            if source.is_spent() {
                return Ok(at);
            }
            let Some(unit) = source.unit(at)? else { return Ok(at) };
            self.last_offset = Some(unit.physical_offset);
            // The log file is missing, so its other messages are not searched one by one.
            if unit.physical_offset < self.skip_until {
                source.skip(at, unit);
                continue;
            }
            let is_in_disk = pull.limits.is_in_disk(unit.physical_offset, pull.log_end);
            if pull.limits.is_full((self.messages, self.bytes), pull.max_messages, unit.size, is_in_disk) {
                return Ok(at);
            }
            self.visit(source, at, unit)?;
        }
        Ok(end)
    }

    #[inline]
    fn visit(&mut self, source: &mut impl PullSource, queue_offset: i64, unit: Unit) -> Result<()> {
        if !unit.is_message() && !unit.is_blank() {
            source.skip(queue_offset, unit);
        }
        // An address in `consumequeue_ext` is not a hash, so the filter cannot decide by it.
        if !is_ext_address(unit.tags_code) && !source.matches_code(unit.tags_code) {
            self.miss(GetMessageStatus::NoMatchedMessage);
            return Ok(());
        }
        if unit.is_left_out() {
            self.miss(GetMessageStatus::MessageWasRemoving);
            return Ok(());
        }
        match source.fetch(queue_offset, unit)? {
            PullStop::Record(len) => {
                self.status = GetMessageStatus::Found;
                self.skip_until = 0;
                self.messages += 1;
                self.bytes = self.bytes.wrapping_add(len as i32);
            }
            PullStop::Unmatched => self.miss(GetMessageStatus::NoMatchedMessage),
            PullStop::Gone(until) => {
                self.skip_until = until.unwrap_or(self.skip_until);
                self.miss(GetMessageStatus::MessageWasRemoving);
            }
        }
        Ok(())
    }

    #[inline]
    fn miss(&mut self, status: GetMessageStatus) {
        // A pull that has found a message keeps the status FOUND, whatever units follow.
        if self.messages == 0 {
            self.status = status;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetLimits {
    /// Maximum number of messages in memory (`maxTransferCountOnMessageInMemory`).
    pub count_in_memory: usize,
    /// Maximum bytes of messages in memory (`maxTransferBytesOnMessageInMemory`).
    pub bytes_in_memory: i32,
    /// Maximum number of messages on the disk (`maxTransferCountOnMessageInDisk`).
    pub count_in_disk: usize,
    /// Maximum bytes of messages on the disk (`maxTransferBytesOnMessageInDisk`).
    pub bytes_in_disk: i32,
    /// Size of the end of the log that counts as being in memory, in bytes.
    pub memory: u64,
}

impl GetLimits {
    /// Returns a broker's default limits on a machine with `physical_memory` bytes. The broker expects 40 % of the
    /// memory to hold messages (`accessMessageInMemoryMaxRatio`).
    pub fn of_broker(physical_memory: u64) -> Self {
        Self {
            count_in_memory: 32,
            bytes_in_memory: 256 << 10,
            count_in_disk: 8,
            bytes_in_disk: 64 << 10,
            memory: Self::share(physical_memory, 40),
        }
    }

    /// Returns limits of `max_messages` messages, and of 256 KiB for every 32 messages. All messages count as being
    /// in memory.
    pub fn of_count(max_messages: usize) -> Self {
        let default = Self::of_broker(u64::MAX);
        let times = max_messages.div_ceil(default.count_in_memory).max(1);
        let bytes_in_memory = times.saturating_mul(default.bytes_in_memory as usize).min(i32::MAX as usize) as i32;
        Self { count_in_memory: max_messages, bytes_in_memory, memory: u64::MAX, ..default }
    }

    /// Returns a percentage of the memory in bytes, rounded as Java rounds it.
    pub fn share(physical_memory: u64, percent: u32) -> u64 {
        (physical_memory as f64 * (f64::from(percent) / 100.0)) as u64
    }

    /// Returns whether a message at `physical_offset` counts as being on the disk only.
    #[inline]
    pub fn is_in_disk(&self, physical_offset: i64, log_end: u64) -> bool {
        let behind = (log_end as i64).saturating_sub(physical_offset);
        u64::try_from(behind).is_ok_and(|behind| behind > self.memory)
    }

    /// Returns whether a batch has no room for another message. The first message always fits. The sum of bytes
    /// overflows as in Java, so a blank entry, whose size is 2 GiB, does not end a batch.
    #[inline]
    pub fn is_full(&self, (count, bytes): (usize, i32), max_messages: usize, next_size: i32, is_in_disk: bool) -> bool {
        if count == 0 || bytes == 0 {
            return false;
        }
        let (most, most_bytes) = match is_in_disk {
            true => (self.count_in_disk, self.bytes_in_disk),
            false => (self.count_in_memory, self.bytes_in_memory),
        };
        count >= max_messages.min(most) || bytes.wrapping_add(next_size) > most_bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetMessageStatus {
    Found,
    NoMatchedMessage,
    MessageWasRemoving,
    OffsetFoundNull,
    OffsetOverflowBadly,
    OffsetOverflowOne,
    OffsetTooSmall,
    NoMessageInQueue,
}

impl GetMessageStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Found => "FOUND",
            Self::NoMatchedMessage => "NO_MATCHED_MESSAGE",
            Self::MessageWasRemoving => "MESSAGE_WAS_REMOVING",
            Self::OffsetFoundNull => "OFFSET_FOUND_NULL",
            Self::OffsetOverflowBadly => "OFFSET_OVERFLOW_BADLY",
            Self::OffsetOverflowOne => "OFFSET_OVERFLOW_ONE",
            Self::OffsetTooSmall => "OFFSET_TOO_SMALL",
            Self::NoMessageInQueue => "NO_MESSAGE_IN_QUEUE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue with ten units per file, and its records.
    struct Made {
        units: Vec<Option<Unit>>,
        min: i64,
        gone_before: i64,
        taken: Vec<i64>,
        budget: usize,
    }

    impl PullSource for Made {
        fn bounds(&self) -> (i64, i64) {
            (self.min, self.units.len() as i64)
        }
        fn units_per_file(&self) -> Option<i64> {
            Some(10)
        }
        fn unit(&mut self, offset: i64) -> Result<Option<Unit>> {
            Ok(self.units[offset as usize])
        }
        fn behind_hole(&mut self, offset: i64) -> i64 {
            offset + 10 - offset % 10
        }
        fn matches_code(&self, tags_code: i64) -> bool {
            tags_code != 7
        }
        fn is_spent(&self) -> bool {
            self.taken.len() >= self.budget
        }
        fn fetch(&mut self, queue_offset: i64, unit: Unit) -> Result<PullStop> {
            if unit.tags_code == 8 {
                return Ok(PullStop::Unmatched);
            }
            if unit.physical_offset < self.gone_before {
                return Ok(PullStop::Gone(Some(self.gone_before)));
            }
            self.taken.push(queue_offset);
            Ok(PullStop::Record(unit.size as usize))
        }
    }

    fn made(codes: &[i64]) -> Made {
        let unit = |(n, code): (usize, &i64)| {
            (*code >= 0).then_some(Unit { physical_offset: 100 * n as i64, size: 100, tags_code: *code })
        };
        Made {
            units: codes.iter().enumerate().map(unit).collect(),
            min: 0,
            gone_before: 0,
            taken: Vec::new(),
            budget: 100,
        }
    }

    fn pull(source: &mut Made, offset: i64, max_messages: usize) -> (GetMessageStatus, i64, usize) {
        let pull = Pull { max_messages, limits: GetLimits::of_count(max_messages), log_end: 10_000 };
        let pulled = pull.run(source, offset).expect("nothing fails");
        assert_eq!(pulled.bytes as usize, 100 * pulled.messages);
        (pulled.status, pulled.next_begin_offset, pulled.messages)
    }

    #[test]
    fn an_offset_outside_of_the_queue_is_told_where_to_go() {
        use GetMessageStatus::{NoMessageInQueue, OffsetOverflowBadly, OffsetOverflowOne, OffsetTooSmall};
        assert_eq!(pull(&mut made(&[]), 5, 32), (NoMessageInQueue, 0, 0));
        let mut queue = made(&[1; 8]);
        queue.min = 3;
        let pulled = [2, 8, 9].map(|offset| pull(&mut queue, offset, 32));
        assert_eq!(pulled, [(OffsetTooSmall, 3, 0), (OffsetOverflowOne, 8, 0), (OffsetOverflowBadly, 8, 0)]);
    }

    #[test]
    fn a_pull_ends_with_its_count_its_file_or_a_hole() {
        use GetMessageStatus::{Found, OffsetFoundNull};
        let mut queue = made(&[&[1; 12][..], &[-1], &[1; 10]].concat());
        assert_eq!(pull(&mut queue, 2, 3), (Found, 5, 3));
        assert_eq!(pull(&mut queue, 2, 32), (Found, 10, 8));
        assert_eq!(pull(&mut queue, 10, 32), (Found, 12, 2));
        assert_eq!(pull(&mut queue, 12, 32), (OffsetFoundNull, 20, 0));
        assert_eq!(queue.taken, [2, 3, 4, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn a_pull_whose_filter_has_cost_enough_ends_with_what_it_has() {
        let mut queue = made(&[1; 9]);
        queue.budget = 4;
        assert_eq!(pull(&mut queue, 1, 32), (GetMessageStatus::Found, 5, 4));
    }

    #[test]
    fn what_is_not_asked_for_is_passed_and_what_is_gone_has_its_name() {
        use GetMessageStatus::{Found, MessageWasRemoving, NoMatchedMessage};
        assert_eq!(pull(&mut made(&[7, 8, 7]), 0, 32), (NoMatchedMessage, 3, 0));
        assert_eq!(pull(&mut made(&[7, 1, 8]), 0, 32), (Found, 3, 1));
        let mut queue = made(&[1, 1, 1]);
        queue.gone_before = 1_000;
        assert_eq!(pull(&mut queue, 0, 32), (MessageWasRemoving, 3, 0));
        queue.gone_before = 200;
        assert_eq!(pull(&mut queue, 0, 32), (Found, 3, 1));
    }

    #[test]
    fn caps_are_those_of_a_broker() {
        let limits = GetLimits::of_broker(1000);
        assert_eq!(limits.memory, 400);
        assert_eq!([600, 599].map(|offset| limits.is_in_disk(offset, 1000)), [false, true]);
        let full = |count, bytes, most, size, disk| limits.is_full((count, bytes), most, size, disk);
        assert!(!full(0, 0, 1, i32::MAX, false) && !full(1, 100, 32, i32::MAX, false));
        assert_eq!([31, 32].map(|count| full(count, 1, 1000, 1, false)), [false, true]);
        assert_eq!([7, 8].map(|count| full(count, 1, 1000, 1, true)), [false, true]);
        assert_eq!([65_535, 65_536].map(|size| full(1, 1, 1000, size, true)), [false, true]);
        assert_eq!([262_143, 262_144].map(|size| full(1, 1, 1000, size, false)), [false, true]);
        assert!(full(3, 1, 3, 1, false));
    }

    #[test]
    fn who_asks_for_more_gets_more_bytes() {
        let limits = GetLimits::of_count(65);
        assert_eq!((limits.count_in_memory, limits.bytes_in_memory), (65, 3 << 18));
        assert!(!limits.is_in_disk(0, u64::MAX >> 1));
        assert_eq!(GetLimits::of_count(1 << 30).bytes_in_memory, i32::MAX);
    }
}
