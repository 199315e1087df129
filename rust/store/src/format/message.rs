//! A record of the commit log.
//!
//! `B` is 8 bytes for an IPv4 born host (sysFlag 0x10 clear) and 20 for IPv6; `S` the same for the store host (0x20).
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i32 | TOTALSIZE: the whole record |
//! | 4 | i32 | MAGICCODE: [`MAGIC_V1`], [`MAGIC_V2`] or [`BLANK_MAGIC`] |
//! | 8 | i32 | BODYCRC: CRC-32 of the stored body, sign bit cleared; 0 for no body |
//! | 12 | i32 | QUEUEID |
//! | 16 | i32 | FLAG: the user's |
//! | 20 | i64 | QUEUEOFFSET: the message's number in its queue |
//! | 28 | i64 | PHYSICALOFFSET: where the record stands in the log |
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
//! A blank record fills the end of a file: its size, [`BLANK_MAGIC`], and then whatever was there.
//!
//! Source: `CommitLog.MessageExtEncoder.encode`, `CommitLog.checkMessageAndReturnSize`, `MessageDecoder.decode`,
//! `MessageVersion` (5.x).
use super::cursor::{i16_at, i32_at, i64_at};
use super::host::Host;
use super::malformed::{Expected, Malformed};
use super::properties;

/// Magic of a record whose topic length is one byte.
pub const MAGIC_V1: i32 = 0xDAA3_20A7_u32 as i32;
/// Magic of a 5.x record whose topic length is two bytes.
pub const MAGIC_V2: i32 = 0xDAA3_20AB_u32 as i32;
/// Magic of the end of a file.
pub const BLANK_MAGIC: i32 = 0xCBD4_3194_u32 as i32;
/// Bytes that stay free behind a record, so that a blank one fits (`END_FILE_MIN_BLANK_LENGTH`).
pub const MIN_BLANK_LEN: usize = 8;
/// Bytes of a V1 record with two IPv4 hosts and nothing in it.
pub const MIN_LEN: usize = 91;

/// sysFlag: the body is compressed.
pub const COMPRESSED: i32 = 0x1;
/// sysFlag: the bits of the transaction type.
pub const TRANSACTION_MASK: i32 = 0xC;
/// sysFlag: prepared; such a record has no place in a queue.
pub const TRANSACTION_PREPARED: i32 = 0x4;
/// sysFlag: rolled back; such a record has no place in a queue.
pub const TRANSACTION_ROLLBACK: i32 = 0xC;
/// sysFlag: the born host is IPv6.
pub const BORN_HOST_V6: i32 = 0x10;
/// sysFlag: the store host is IPv6.
pub const STORE_HOST_V6: i32 = 0x20;

const SYS_FLAG_AT: usize = 36;
const BORN_HOST_AT: usize = 48;

/// What stands at a position of the commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A message.
    Message(Layout),
    /// The end of the file; the size it claims.
    Blank(usize),
    /// Nothing was written here yet.
    Unwritten,
    /// The bytes end before the record does; it needs so many.
    Partial(usize),
}

/// Where the parts of one record are, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the record.
    pub total: u32,
    /// As stored.
    pub sys_flag: i32,
    /// Start of the body.
    pub body: u32,
    /// Bytes of the body.
    pub body_len: u32,
    /// Start of the topic.
    pub topic: u32,
    /// Bytes of the topic.
    pub topic_len: u16,
    /// Bytes of the properties, which end the record.
    pub properties_len: u16,
}

impl Layout {
    /// Reads the lengths of the record that `bytes` begin with and checks that they agree.
    ///
    /// # Errors
    /// The first field that breaks the format. The body CRC is not checked: see [`Message::body_crc_matches`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Item, Malformed> {
        let (Some(total), Some(magic)) = (i32_at(bytes, 0), i32_at(bytes, 4)) else {
            return Ok(if bytes.iter().all(|b| *b == 0) { Item::Unwritten } else { Item::Partial(MIN_BLANK_LEN) });
        };
        let version = match magic {
            MAGIC_V1 => 1,
            MAGIC_V2 => 2,
            BLANK_MAGIC => return blank(total),
            0 if total == 0 => return Ok(Item::Unwritten),
            _ => return Err(malformed("magic code", 4, Expected::Words("a message or blank magic"), magic)),
        };
        if total < MIN_LEN as i32 {
            return Err(malformed("total size", 0, Expected::AtLeast(MIN_LEN as i64), total));
        }
        match bytes.get(..total as usize) {
            Some(record) => Self::of_record(record, version).map(Item::Message),
            None => Ok(Item::Partial(total as usize)),
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
        if properties + properties_len as usize != len {
            let expected = Expected::Value(properties as i64 + properties_len);
            return Err(malformed("total size", 0, expected, len as i32));
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

    /// Whether the record has a place in a queue: prepared and rolled-back ones do not.
    #[inline]
    pub fn is_dispatched(&self) -> bool {
        !matches!(self.sys_flag & TRANSACTION_MASK, TRANSACTION_PREPARED | TRANSACTION_ROLLBACK)
    }

    /// Position of the store timestamp, behind a born host of either family.
    #[inline]
    pub fn store_timestamp_at(&self) -> usize {
        BORN_HOST_AT + host_len(self.sys_flag, BORN_HOST_V6)
    }
}

fn blank(total: i32) -> Result<Item, Malformed> {
    if total < MIN_BLANK_LEN as i32 {
        return Err(malformed("blank size", 0, Expected::AtLeast(MIN_BLANK_LEN as i64), total));
    }
    Ok(Item::Blank(total as usize))
}

#[cold]
fn too_long(field: &'static str, at: usize, got: i64, room: usize) -> Malformed {
    Malformed { field, at, expected: Expected::AtMost(room as i64), got }
}

#[cold]
fn malformed(field: &'static str, at: usize, expected: Expected, got: i32) -> Malformed {
    Malformed { field, at, expected, got: i64::from(got) }
}

#[inline]
fn host_len(sys_flag: i32, v6_bit: i32) -> usize {
    if sys_flag & v6_bit == 0 { 8 } else { 20 }
}

/// A record and the layout that was read from it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    record: &'a [u8],
    layout: Layout,
}

impl<'a> Message<'a> {
    /// The message that `bytes` begin with, or `None` for anything else.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        match Layout::decode(bytes) {
            Ok(Item::Message(layout)) => Self::new(bytes, layout),
            _ => None,
        }
    }

    /// Joins the bytes with the layout read from them; `None` when `bytes` are too few.
    #[inline]
    pub fn new(bytes: &'a [u8], layout: Layout) -> Option<Self> {
        Some(Self { record: bytes.get(..layout.total as usize)?, layout })
    }

    /// The whole record.
    pub fn record(&self) -> &'a [u8] {
        self.record
    }
    /// Where its parts are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
    /// Queue number within the topic.
    #[inline]
    pub fn queue_id(&self) -> i32 {
        self.i32_at(12)
    }
    /// The user's flag.
    #[inline]
    pub fn flag(&self) -> i32 {
        self.i32_at(16)
    }
    /// The message's number in its queue.
    #[inline]
    pub fn queue_offset(&self) -> i64 {
        self.i64_at(20)
    }
    /// Where the record says that it stands.
    #[inline]
    pub fn physical_offset(&self) -> i64 {
        self.i64_at(28)
    }
    /// CRC of the stored body.
    #[inline]
    pub fn body_crc(&self) -> i32 {
        self.i32_at(8)
    }
    /// Milliseconds, the producer's clock.
    #[inline]
    pub fn born_timestamp(&self) -> i64 {
        self.i64_at(40)
    }
    /// Milliseconds, the broker's clock.
    #[inline]
    pub fn store_timestamp(&self) -> i64 {
        self.i64_at(self.layout.store_timestamp_at())
    }
    /// The producer, 8 or 20 bytes.
    #[inline]
    pub fn born_host(&self) -> &'a [u8] {
        self.slice(BORN_HOST_AT, host_len(self.layout.sys_flag, BORN_HOST_V6))
    }
    /// The broker, 8 or 20 bytes.
    #[inline]
    pub fn store_host(&self) -> &'a [u8] {
        self.slice(self.layout.store_timestamp_at() + 8, host_len(self.layout.sys_flag, STORE_HOST_V6))
    }
    /// How often it was consumed in vain.
    #[inline]
    pub fn reconsume_times(&self) -> i32 {
        self.i32_at(self.layout.body as usize - 16)
    }
    /// Physical offset of the half message of a committed transaction.
    #[inline]
    pub fn prepared_transaction_offset(&self) -> i64 {
        self.i64_at(self.layout.body as usize - 12)
    }
    /// The body as stored, maybe compressed.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.slice(self.layout.body as usize, self.layout.body_len as usize)
    }
    /// UTF-8 as a rule; not checked.
    #[inline]
    pub fn topic(&self) -> &'a [u8] {
        self.slice(self.layout.topic as usize, self.layout.topic_len as usize)
    }
    /// The property string: see [`properties`].
    #[inline]
    pub fn properties(&self) -> &'a [u8] {
        let len = self.layout.properties_len as usize;
        self.slice(self.record.len() - len, len)
    }
    /// The value of one property, the last of that name.
    pub fn property(&self, name: &str) -> Option<&'a [u8]> {
        properties::get(self.properties(), name)
    }

    /// Whether the body is what its CRC says.
    #[inline]
    pub fn body_crc_matches(&self) -> bool {
        body_crc(self.body()) == self.body_crc()
    }

    #[inline]
    fn i32_at(&self, at: usize) -> i32 {
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

/// The CRC that a record stores for `body` (`UtilAll.crc32`).
#[inline]
pub fn body_crc(body: &[u8]) -> i32 {
    if body.is_empty() { 0 } else { (crc32fast::hash(body) & 0x7FFF_FFFF) as i32 }
}

/// The values of a record to be written; lengths, magic and CRC follow from them.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    /// Queue number within the topic.
    pub queue_id: i32,
    /// The user's flag.
    pub flag: i32,
    /// The message's number in its queue.
    pub queue_offset: i64,
    /// Where the record will stand.
    pub physical_offset: i64,
    /// The host-family bits are set from the hosts.
    pub sys_flag: i32,
    /// Milliseconds.
    pub born_timestamp: i64,
    /// The producer.
    pub born_host: Host,
    /// Milliseconds.
    pub store_timestamp: i64,
    /// The broker.
    pub store_host: Host,
    /// How often it was consumed in vain.
    pub reconsume_times: i32,
    /// Physical offset of the half message, or 0.
    pub prepared_transaction_offset: i64,
    /// As it shall be stored, compressed if `sys_flag` says so.
    pub body: &'a [u8],
    /// Up to 127 bytes make a V1 record, more a V2 record.
    pub topic: &'a str,
    /// The property string.
    pub properties: &'a [u8],
}

impl NewMessage<'_> {
    /// Bytes that [`encode`](Self::encode) appends.
    pub fn encoded_len(&self) -> usize {
        let hosts = self.born_host.encoded_len() + self.store_host.encoded_len();
        MIN_LEN - 16 + hosts + self.body.len() + self.topic_width() - 1 + self.topic.len() + self.properties.len()
    }

    /// Appends the record; its property CRC, if `properties` reserve one, is sealed.
    ///
    /// # Errors
    /// A topic, property string or record longer than its length field can tell.
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
        if properties::check_crc(&out[start..]).is_some() {
            properties::seal_crc(&mut out[start..]);
        }
        Ok(())
    }

    fn encode_head(&self, out: &mut Vec<u8>) {
        let families = if self.born_host.ip.is_ipv6() { BORN_HOST_V6 } else { 0 }
            | if self.store_host.ip.is_ipv6() { STORE_HOST_V6 } else { 0 };
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
        if self.topic.len() <= i8::MAX as usize { 1 } else { 2 }
    }
}

/// The 8 bytes that end a file with `remaining` bytes left (`CommitLog.DefaultAppendMessageCallback.doAppend`).
pub fn encode_blank(remaining: u32) -> [u8; MIN_BLANK_LEN] {
    let mut out = [0; MIN_BLANK_LEN];
    out[..4].copy_from_slice(&remaining.to_be_bytes());
    out[4..].copy_from_slice(&BLANK_MAGIC.to_be_bytes());
    out
}

#[cfg(test)]
mod tests;
