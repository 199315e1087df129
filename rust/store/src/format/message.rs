//! A record of the commit log: a stored message.
//!
//! `B` is the length of the born host: 8 bytes for IPv4 (sysFlag 0x10 clear), 20 for IPv6. `S` is the same for the store host (0x20).
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i32 | TOTALSIZE: the whole record |
//! | 4 | i32 | MAGICCODE: [`MAGIC_V1`], [`MAGIC_V2`] or [`BLANK_MAGIC`] |
//! | 8 | i32 | BODYCRC: CRC-32 of the stored body, sign bit cleared; 0 if the body is empty |
//! | 12 | i32 | QUEUEID |
//! | 16 | i32 | FLAG: a number that the application sets |
//! | 20 | i64 | QUEUEOFFSET: the message's number in its queue |
//! | 28 | i64 | PHYSICALOFFSET: the record's offset in the log |
//! | 36 | i32 | SYSFLAG |
//! | 40 | i64 | BORNTIMESTAMP, ms |
//! | 48 | B | BORNHOST |
//! | 48+B | i64 | STORETIMESTAMP, ms |
//! | 56+B | S | STOREHOST |
//! | 56+B+S | i32 | RECONSUMETIMES |
//! | 60+B+S | i64 | PREPAREDTRANSACTIONOFFSET |
//! | 68+B+S | i32, n | BODY |
//! | … | i8 (V1) or i16 (V2), t | TOPIC |
//! | … | i16, p | PROPERTIES |
//!
//! A blank record fills the end of a file. It has its size, [`BLANK_MAGIC`], and then any bytes.
//!
//! Source: `CommitLog.MessageExtEncoder.encode`, `CommitLog.checkMessageAndReturnSize`, `MessageDecoder.decode`, `MessageVersion`
//! (5.x).
use super::cursor::{Expected, Malformed, i16_at, i32_at, i64_at};
use super::host::Host;
use super::properties;

#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    record: &'a [u8],
    layout: Layout,
}

impl<'a> Message<'a> {
    /// Decodes the message at the start of `bytes`. `None` for a blank, truncated or malformed record.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        match Layout::decode(bytes) {
            Ok(Item::Message(layout)) => Self::new(bytes, layout),
            _ => None,
        }
    }

    /// Combines the bytes of a record with their layout. `None` if `bytes` is shorter than the record.
    #[inline]
    pub fn new(bytes: &'a [u8], layout: Layout) -> Option<Self> {
        Some(Self { record: bytes.get(..layout.total as usize)?, layout })
    }

    pub fn record(&self) -> &'a [u8] {
        self.record
    }
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
    #[inline]
    pub fn queue_id(&self) -> i32 {
        self.i32_at(12)
    }
    #[inline]
    pub fn flag(&self) -> i32 {
        self.i32_at(16)
    }
    /// Returns the position of the message in its queue, counted in messages.
    #[inline]
    pub fn queue_offset(&self) -> i64 {
        self.i64_at(20)
    }
    /// Returns the record's offset in the commit log, as stored in the record.
    #[inline]
    pub fn physical_offset(&self) -> i64 {
        self.i64_at(28)
    }
    /// Returns the stored CRC of the body. See [`body_crc_matches`](Self::body_crc_matches) to check the CRC.
    #[inline]
    pub fn body_crc(&self) -> i32 {
        self.i32_at(8)
    }
    /// Returns the time of creation in milliseconds since 1970, by the producer's clock.
    #[inline]
    pub fn born_timestamp(&self) -> i64 {
        self.i64_at(40)
    }
    /// Returns the time of storing in milliseconds since 1970, by the broker's clock.
    #[inline]
    pub fn store_timestamp(&self) -> i64 {
        self.i64_at(self.layout.store_timestamp_at())
    }
    /// Returns address and port of the producer, 8 or 20 bytes.
    #[inline]
    pub fn born_host(&self) -> &'a [u8] {
        self.slice(BORN_HOST_AT, host_len(self.layout.sys_flag, BORN_HOST_V6))
    }
    /// Returns address and port of the broker, 8 or 20 bytes.
    #[inline]
    pub fn store_host(&self) -> &'a [u8] {
        // The store host follows the store timestamp, which has 8 bytes.
        self.slice(self.layout.store_timestamp_at() + 8, host_len(self.layout.sys_flag, STORE_HOST_V6))
    }
    /// Returns the number of failed deliveries to consumers.
    #[inline]
    pub fn reconsume_times(&self) -> i32 {
        // Counted back from the body, since the hosts before this field have no fixed length.
        self.i32_at(self.layout.body as usize - 16)
    }
    /// Returns the physical offset of the half message, for the commit of a transaction. Otherwise usually returns 0.
    #[inline]
    pub fn prepared_transaction_offset(&self) -> i64 {
        self.i64_at(self.layout.body as usize - 12)
    }
    /// Returns the body as stored, which may be compressed.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.slice(self.layout.body as usize, self.layout.body_len as usize)
    }
    /// Returns the topic, usually UTF-8. It is not validated.
    #[inline]
    pub fn topic(&self) -> &'a [u8] {
        self.slice(self.layout.topic as usize, self.layout.topic_len as usize)
    }
    /// Returns the property string, for the functions of [`properties`].
    #[inline]
    pub fn properties(&self) -> &'a [u8] {
        let len = self.layout.properties_len as usize;
        self.slice(self.record.len() - len, len)
    }
    /// Returns the value of a property, or `None`. Of a repeated name the last value counts.
    pub fn property(&self, name: &str) -> Option<&'a [u8]> {
        properties::get(self.properties(), name)
    }

    #[inline]
    pub fn body_crc_matches(&self) -> bool {
        body_crc(self.body()) == self.body_crc()
    }

    #[inline]
    fn i32_at(&self, at: usize) -> i32 {
        // The layout was checked against the record's length, so the field exists.
        i32_at(self.record, at).unwrap_or_default()
    }
    #[inline]
    fn i64_at(&self, at: usize) -> i64 {
        i64_at(self.record, at).unwrap_or_default()
    }
    #[inline]
    fn slice(&self, at: usize, len: usize) -> &'a [u8] {
        self.record.get(at..at + len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;

/// Magic number of a record whose topic length has one byte.
pub const MAGIC_V1: i32 = 0xDAA3_20A7_u32 as i32;
/// Magic number of a 5.x record whose topic length has two bytes.
pub const MAGIC_V2: i32 = 0xDAA3_20AB_u32 as i32;
/// Magic number of the blank record that fills the end of a file.
pub const BLANK_MAGIC: i32 = 0xCBD4_3194_u32 as i32;
/// Bytes that stay free behind each record of a file, so that a blank record fits (`END_FILE_MIN_BLANK_LENGTH`).
pub const MIN_BLANK_LEN: usize = 8;
/// Length of a V1 record with two IPv4 hosts, and empty topic, body and properties.
pub const MIN_LEN: usize = 91;
/// Size of the smallest log file: a record with a topic of one letter, and the free bytes behind it.
pub const MIN_FILE_SIZE: u64 = (MIN_LEN + MIN_BLANK_LEN + 1) as u64;

/// Bit of sysFlag: the body is compressed.
pub const COMPRESSED: i32 = 0x1;
/// Bits of sysFlag for the type of transaction.
pub const TRANSACTION_MASK: i32 = 0xC;
/// Value of the transaction bits for a prepared (half) message. Consumers do not see the message, so no queue lists
/// it.
pub const TRANSACTION_PREPARED: i32 = 0x4;
/// Value of the transaction bits for a rolled-back message. Consumers do not see the message, so no queue lists it.
pub const TRANSACTION_ROLLBACK: i32 = 0xC;
/// Bit of sysFlag: the record contains several messages. 5.x lists it in another kind of queue.
pub const INNER_BATCH: i32 = 0x80;
/// Bit of sysFlag: the born host has an IPv6 address.
pub const BORN_HOST_V6: i32 = 0x10;
/// Bit of sysFlag: the store host has an IPv6 address.
pub const STORE_HOST_V6: i32 = 0x20;

pub(super) const SYS_FLAG_AT: usize = 36;
pub(super) const BORN_HOST_AT: usize = 48;

/// Computes the CRC that a record stores for `body` (`UtilAll.crc32`).
#[inline]
pub fn body_crc(body: &[u8]) -> i32 {
    if body.is_empty() { 0 } else { (crc32fast::hash(body) & 0x7FFF_FFFF) as i32 }
}

/// Returns the length of a host. `v6_bit` is the bit of its address family.
#[inline]
pub(super) fn host_len(sys_flag: i32, v6_bit: i32) -> usize {
    if sys_flag & v6_bit == 0 { 8 } else { 20 }
}

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

/// The fields of a new record. `encode` computes lengths, magic number and CRC.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    pub queue_id: i32,
    pub flag: i32,
    pub queue_offset: i64,
    /// System flag. `encode` overwrites the two bits of the address families.
    pub physical_offset: i64,
    /// System flag of the message. `encode` overwrites the two bits for IPv6 hosts.
    pub sys_flag: i32,
    /// Time of creation in milliseconds since 1970, by the producer's clock.
    pub born_timestamp: i64,
    pub born_host: Host,
    pub store_timestamp: i64,
    pub store_host: Host,
    pub reconsume_times: i32,
    /// Physical offset of the half message, for the commit of a transaction. Otherwise 0.
    pub prepared_transaction_offset: i64,
    /// The body as stored: compressed if `sys_flag` has the bit `COMPRESSED`.
    pub body: &'a [u8],
    /// A topic of up to 127 bytes makes a V1 record, a longer topic a V2 record.
    pub topic: &'a str,
    pub properties: &'a [u8],
}

impl NewMessage<'_> {
    /// Returns the number of bytes that [`encode`](Self::encode) appends.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        let hosts = self.born_host.encoded_len() + self.store_host.encoded_len();
        // `MIN_LEN` includes two IPv4 hosts of 8 bytes each, and one byte for the topic's length.
        MIN_LEN - 16 + hosts + self.body.len() + self.topic_width() - 1 + self.topic.len() + self.properties.len()
    }

    /// Appends the record to `out`. Computes the property CRC if `properties` reserve bytes for it. Fails if a part is longer than its
    /// length field allows.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        self.check()?;
        let start = out.len();
        out.reserve(self.encoded_len());
        self.encode_head(out);
        out.extend_from_slice(&(self.body.len() as i32).to_be_bytes());
        out.extend_from_slice(self.body);
        match self.topic_width() {
            1 => out.push(self.topic.len() as u8),
            _ => out.extend_from_slice(&(self.topic.len() as i16).to_be_bytes()),
        }
        out.extend_from_slice(self.topic.as_bytes());
        out.extend_from_slice(&(self.properties.len() as i16).to_be_bytes());
        out.extend_from_slice(self.properties);
        // The property CRC comes last, since it covers all bytes before it.
        if properties::check_crc(&out[start..]).is_some() {
            properties::seal_crc(&mut out[start..]);
        }
        Ok(())
    }

    fn encode_head(&self, out: &mut Vec<u8>) {
        let families = if self.born_host.ip.is_ipv6() { BORN_HOST_V6 } else { 0 }
            | if self.store_host.ip.is_ipv6() { STORE_HOST_V6 } else { 0 };
        // The addresses decide these bits, not the caller, as in `asyncPutMessage`.
        let sys_flag = self.sys_flag & !(BORN_HOST_V6 | STORE_HOST_V6) | families;
        let magic = if self.topic_width() == 1 { MAGIC_V1 } else { MAGIC_V2 };
        for value in [self.encoded_len() as i32, magic, body_crc(self.body), self.queue_id, self.flag] {
            out.extend_from_slice(&value.to_be_bytes());
        }
        out.extend_from_slice(&self.queue_offset.to_be_bytes());
        out.extend_from_slice(&self.physical_offset.to_be_bytes());
        out.extend_from_slice(&sys_flag.to_be_bytes());
        out.extend_from_slice(&self.born_timestamp.to_be_bytes());
        self.born_host.encode(out);
        out.extend_from_slice(&self.store_timestamp.to_be_bytes());
        self.store_host.encode(out);
        out.extend_from_slice(&self.reconsume_times.to_be_bytes());
        out.extend_from_slice(&self.prepared_transaction_offset.to_be_bytes());
    }

    fn check(&self) -> Result<(), Malformed> {
        let limits = [
            ("topic length", self.topic.len(), i16::MAX as usize),
            ("properties length", self.properties.len(), properties::MAX_LEN),
            ("total size", self.encoded_len(), i32::MAX as usize),
        ];
        match limits.into_iter().find(|(_, len, limit)| len > limit) {
            Some((field, len, limit)) => {
                Err(Malformed { field, at: 0, expected: Expected::AtMost(limit as i64), got: len as i64 })
            }
            None => Ok(()),
        }
    }

    fn topic_width(&self) -> usize {
        // Java reads the topic length of a V1 record as a signed byte.
        if self.topic.len() <= i8::MAX as usize { 1 } else { 2 }
    }
}

/// Returns whether a record of `size` bytes fits into the `room` bytes left in a file. A file always keeps room for a
/// blank record behind the last record (`CommitLog.DefaultAppendMessageCallback.doAppend`).
#[inline]
pub fn has_room(room: u64, size: u64) -> bool {
    size.saturating_add(MIN_BLANK_LEN as u64) <= room
}

/// Encodes the blank record of a file with `remaining` bytes left (`CommitLog.DefaultAppendMessageCallback.doAppend`). Only its first 8
/// bytes are written.
pub fn encode_blank(remaining: u32) -> [u8; MIN_BLANK_LEN] {
    let mut out = [0; MIN_BLANK_LEN];
    out[..4].copy_from_slice(&remaining.to_be_bytes());
    out[4..].copy_from_slice(&BLANK_MAGIC.to_be_bytes());
    out
}
