//! A consume-queue entry, here called unit: 20 bytes that point from a position of a queue to a record of the commit log.
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i64 | physical offset of the record |
//! | 8 | i32 | size of the record |
//! | 12 | i64 | tags code: the tag's hash; in `SCHEDULE_TOPIC_XXXX` the time to deliver at |
//!
//! Source: `ConsumeQueue.CQ_STORE_UNIT_SIZE`, `ConsumeQueue.putMessagePositionInfo`, `ConsumeQueue.fillPreBlank`.
use super::cursor::{i32_at, i64_at};

pub const UNIT_SIZE: usize = 20;

/// Size field of a pre-blank entry. RocketMQ fills a consume-queue file with pre-blank entries if the queue's first
/// message is in the middle of the file.
pub const PRE_BLANK_SIZE: i32 = i32::MAX;

/// Tag hash in the entry of a lost or left-out message. Brokers compare only the lower half, which is 0, the hash of
/// no tag.
pub const LEFT_OUT: i64 = 1 << 32;

/// Returns whether a tags code is an address in `consumequeue_ext` (`ConsumeQueueExt.isExtAddr`). Such a code is not
/// a tag hash.
#[inline]
pub fn is_ext_address(tags_code: i64) -> bool {
    // A tag hash has 32 bits, so a smaller value cannot be a hash.
    tags_code < i64::from(i32::MIN)
}

#[inline]
pub fn is_no_message(size: i32, tags_code: i64) -> bool {
    // The size alone does not decide, since the last entry of a queue with losses has another size.
    size == PRE_BLANK_SIZE || tags_code == LEFT_OUT
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    pub physical_offset: i64,
    pub size: i32,
    /// Hash of the tag. In the delay topic: the time of delivery in milliseconds.
    pub tags_code: i64,
}

impl Unit {
    /// An entry before the first message of a queue. It does not belong to any message.
    pub const PRE_BLANK: Self = Self { physical_offset: 0, size: PRE_BLANK_SIZE, tags_code: 0 };

    /// Creates the last entry of a queue that has lost its last messages. The entry spans the log file before
    /// `log_file` and the first byte of `log_file`. RocketMQ finds no message there, and counts the log as dispatched
    /// up to that byte (`ConsumeQueue.maxPhysicOffset`). With the size of a pre-blank entry, RocketMQ would count bytes
    /// that do not exist. `file_size` is the size of a log file.
    pub const fn last_left_out(log_file: i64, file_size: i32) -> Self {
        Self { physical_offset: log_file - file_size as i64, size: file_size.saturating_add(1), tags_code: LEFT_OUT }
    }

    /// Creates an entry that replaces a lost or left-out message in the middle of a queue. RocketMQ reads it as
    /// pre-blank, although it writes pre-blank entries only at the beginning of a queue. For the last entry of a
    /// queue file, `log_file` is the start of the log file with the queue's next message, so that a broker removes
    /// both files together. For all other entries `log_file` is 0.
    pub const fn left_out(log_file: i64) -> Self {
        Self { physical_offset: log_file, size: PRE_BLANK_SIZE, tags_code: LEFT_OUT }
    }

    /// Decodes the first 20 bytes. `None` if there are fewer.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; UNIT_SIZE] = bytes.first_chunk()?;
        Some(Self { physical_offset: i64_at(bytes, 0)?, size: i32_at(bytes, 8)?, tags_code: i64_at(bytes, 12)? })
    }

    #[inline]
    pub fn encode(&self) -> [u8; UNIT_SIZE] {
        let mut out = [0; UNIT_SIZE];
        out[..8].copy_from_slice(&self.physical_offset.to_be_bytes());
        out[8..12].copy_from_slice(&self.size.to_be_bytes());
        out[12..].copy_from_slice(&self.tags_code.to_be_bytes());
        out
    }

    /// Returns the commit log offset at which the record of the entry ends, or 0 if the entry points to no record.
    #[inline]
    pub fn end(&self) -> u64 {
        // A damaged entry may contain negative numbers.
        let number = |value: i64| u64::try_from(value).unwrap_or(0);
        number(self.physical_offset).saturating_add(number(self.size.into()))
    }

    /// Returns whether the entry points to a record. The size decides, since an unwritten entry is all zero and
    /// offset 0 is legal.
    #[inline]
    pub fn is_message(&self) -> bool {
        !is_no_message(self.size, self.tags_code) && self.size > 0 && self.physical_offset >= 0
    }

    #[inline]
    pub fn is_blank(&self) -> bool {
        *self == Self::PRE_BLANK || self.is_left_out()
    }

    #[inline]
    pub fn is_left_out(&self) -> bool {
        self.size > 0 && self.tags_code == LEFT_OUT && self.physical_offset >= 0
    }

    /// Returns whether RocketMQ counts the entry as written, which it does for messages and pre-blank entries.
    #[inline]
    pub fn is_written(&self) -> bool {
        // A broker uses the same condition to find the end of a queue.
        self.size > 0 && self.physical_offset >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: [u8; UNIT_SIZE] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0x27, 0xA8, 0x07];

    #[test]
    fn a_unit_of_a_real_broker_decodes_and_encodes() {
        let unit = Unit { physical_offset: 0, size: 129, tags_code: 2_598_919 };
        assert_eq!(Unit::decode(&GOLDEN), Some(unit));
        assert_eq!(unit.encode(), GOLDEN);
    }

    #[test]
    fn a_short_unit_is_none() {
        assert_eq!(Unit::decode(&GOLDEN[..19]), None);
    }

    #[test]
    fn zero_and_pre_blank_units_are_no_messages() {
        assert!(!Unit::default().is_message() && !Unit::default().is_written());
        assert!(!Unit::PRE_BLANK.is_message() && Unit::PRE_BLANK.is_written());
        assert!(!Unit::left_out(4096).is_message() && Unit::left_out(4096).is_written());
        assert_eq!([Unit::default(), Unit::PRE_BLANK, Unit::left_out(0)].map(|u| u.is_blank()), [false, true, true]);
        assert_eq!([Unit::PRE_BLANK, Unit::left_out(7)].map(|u| u.is_left_out()), [false, true]);
        assert_eq!(LEFT_OUT as i32, 0);
        let last = Unit::last_left_out(8192, 4096);
        assert_eq!((last.physical_offset, last.size), (4096, 4097));
        assert!(last.is_left_out() && last.is_blank() && last.is_written() && !last.is_message());
    }
}
