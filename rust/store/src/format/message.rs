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
//! Source: `CommitLog.MessageExtEncoder.encode`, `CommitLog.checkMessageAndReturnSize`, `MessageDecoder.decode`,
//! `MessageVersion` (5.x).
use super::cursor::{i32_at, i64_at};
use super::properties;

mod fields;
mod layout;
mod new_message;

pub use fields::{
    BLANK_MAGIC, BORN_HOST_V6, COMPRESSED, INNER_BATCH, MAGIC_V1, MAGIC_V2, MIN_BLANK_LEN, MIN_FILE_SIZE, MIN_LEN,
    STORE_HOST_V6, TRANSACTION_MASK, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK, body_crc,
};
use fields::{BORN_HOST_AT, host_len};
pub use layout::{Item, Layout};
pub use new_message::{NewMessage, encode_blank, has_room};

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
    /// Returns the number of the queue within the topic.
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
    /// Returns the value of a property. Of a repeated name the last value counts.
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
