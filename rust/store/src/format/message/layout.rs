//! Decodes the lengths in a record and checks that they agree.
use super::fields::{
    BLANK_MAGIC, BORN_HOST_AT, BORN_HOST_V6, MAGIC_V1, MAGIC_V2, MIN_BLANK_LEN, MIN_LEN, STORE_HOST_V6, SYS_FLAG_AT,
    TRANSACTION_MASK, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK, host_len,
};
use crate::format::cursor::{i16_at, i32_at};
use crate::format::malformed::{Expected, Malformed};
use crate::format::properties;

/// The kind of item at a position of the commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Message(Layout),
    /// A blank record at the end of the file, with its size.
    Blank(usize),
    /// Zeroes, which mean that this part of the file was never written.
    Unwritten,
    /// A record of which only the first bytes are given. Holds the number of bytes that the decoder needs.
    Partial(usize),
}

/// The positions of a record's parts, in bytes from the start of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub total: u32,
    pub sys_flag: i32,
    pub body: u32,
    pub body_len: u32,
    pub topic: u32,
    pub topic_len: u16,
    /// The position of the properties follows from this length, since they are the last part of the record.
    pub properties_len: u16,
}

impl Layout {
    /// Decodes the lengths of the record at the start of `bytes` and checks that they agree. Does not check the body CRC: see
    /// [`Message::body_crc_matches`](super::Message::body_crc_matches).
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Item, Malformed> {
        let (Some(total), Some(magic)) = (i32_at(bytes, 0), i32_at(bytes, 4)) else {
            return Ok(if bytes.iter().all(|b| *b == 0) { Item::Unwritten } else { Item::Partial(MIN_BLANK_LEN) });
        };
        let version = match magic {
            MAGIC_V1 => 1,
            MAGIC_V2 => 2,
            BLANK_MAGIC => return blank(total),
            // Files are allocated with zeroes, so zeroes were never written.
            0 if total == 0 => return Ok(Item::Unwritten),
            _ => return Err(violation("magic code", 4, Expected::Words("a message or blank magic"), magic)),
        };
        if total < MIN_LEN as i32 {
            return Err(violation("total size", 0, Expected::AtLeast(MIN_LEN as i64), total));
        }
        match bytes.get(..total as usize) {
            Some(record) => Self::of_record(record, version).map(Item::Message),
            None => Self::of_head(bytes, total as usize, version),
        }
    }

    /// Checks a record of which only the first bytes are given, in `head`. The size of the record is trusted only if
    /// the body length agrees with it. Otherwise a flipped bit could cause a read of a gigabyte.
    fn of_head(head: &[u8], total: usize, topic_width: usize) -> Result<Item, Malformed> {
        let sys_flag = i32_at(head, SYS_FLAG_AT).unwrap_or(0);
        // 72 bytes of fixed fields, plus the two hosts: see the table in `message`.
        let body = 72 + host_len(sys_flag, BORN_HOST_V6) + host_len(sys_flag, STORE_HOST_V6);
        let Some(body_len) = i32_at(head, body - 4).map(i64::from) else { return Ok(Item::Partial(total)) };
        let most = total as i64 - (body + topic_width + 2) as i64;
        let topic_most = if topic_width == 1 { i64::from(i8::MAX) } else { i64::from(i16::MAX) };
        // Topic and properties have maximum lengths, so the body must fill the rest of the record.
        let least = (most - topic_most - properties::MAX_LEN as i64).max(0);
        match body_len {
            n if n < least => {
                Err(Malformed { field: "body length", at: body - 4, expected: Expected::AtLeast(least), got: n })
            }
            n if n > most => {
                Err(Malformed { field: "body length", at: body - 4, expected: Expected::AtMost(most), got: n })
            }
            _ => Ok(Item::Partial(total)),
        }
    }

    #[inline]
    fn of_record(record: &[u8], topic_width: usize) -> Result<Self, Malformed> {
        let len = record.len();
        let sys_flag = i32_at(record, SYS_FLAG_AT).unwrap_or(0);
        let body = 72 + host_len(sys_flag, BORN_HOST_V6) + host_len(sys_flag, STORE_HOST_V6);
        let body_len = i32_at(record, body - 4).map_or(-1, i64::from);
        if body_len < 0 || body_len > (len - MIN_LEN) as i64 {
            return Err(too_long("body length", body - 4, body_len, len - MIN_LEN));
        }
        let topic = body + body_len as usize + topic_width;
        let topic_len = match topic_width {
            // Java reads a signed byte.
            1 => record.get(topic - 1).map_or(-1, |b| i64::from(*b as i8)),
            _ => i16_at(record, topic - 2).map_or(-1, i64::from),
        };
        if topic_len < 0 {
            return Err(too_long("topic length", topic - topic_width, topic_len, len.saturating_sub(topic)));
        }
        let properties = topic + topic_len as usize + 2;
        let properties_len = i16_at(record, properties - 2).map_or(-1, i64::from);
        if properties_len < 0 {
            return Err(too_long("properties length", properties - 2, properties_len, len.saturating_sub(properties)));
        }
        // Java's check of a record (`checkMessageAndReturnSize`): all lengths add up to its size.
        if properties + properties_len as usize != len {
            let expected = Expected::Value(properties as i64 + properties_len);
            return Err(violation("total size", 0, expected, len as i32));
        }
        Ok(Self {
            total: len as u32,
            sys_flag,
            body: body as u32,
            body_len: body_len as u32,
            topic: topic as u32,
            topic_len: topic_len as u16,
            properties_len: properties_len as u16,
        })
    }

    /// Returns whether consume queues list the record. They do not list prepared and rolled-back messages.
    #[inline]
    pub fn is_dispatched(&self) -> bool {
        !matches!(self.sys_flag & TRANSACTION_MASK, TRANSACTION_PREPARED | TRANSACTION_ROLLBACK)
    }

    /// Returns the position of the store timestamp, which follows the born host.
    #[inline]
    pub fn store_timestamp_at(&self) -> usize {
        BORN_HOST_AT + host_len(self.sys_flag, BORN_HOST_V6)
    }
}

fn blank(total: i32) -> Result<Item, Malformed> {
    if total < MIN_BLANK_LEN as i32 {
        return Err(violation("blank size", 0, Expected::AtLeast(MIN_BLANK_LEN as i64), total));
    }
    Ok(Item::Blank(total as usize))
}

#[cold]
fn too_long(field: &'static str, at: usize, got: i64, room: usize) -> Malformed {
    Malformed { field, at, expected: Expected::AtMost(room as i64), got }
}

#[cold]
fn violation(field: &'static str, at: usize, expected: Expected, got: i32) -> Malformed {
    Malformed { field, at, expected, got: i64::from(got) }
}
