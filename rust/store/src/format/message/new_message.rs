//! Encodes a new record.
use super::fields::{BLANK_MAGIC, BORN_HOST_V6, MAGIC_V1, MAGIC_V2, MIN_BLANK_LEN, MIN_LEN, STORE_HOST_V6, body_crc};
use crate::format::host::Host;
use crate::format::malformed::{Expected, Malformed};
use crate::format::properties;

/// The fields of a new record. `encode` computes lengths, magic number and CRC.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    pub queue_id: i32,
    pub flag: i32,
    /// Position of the message in its queue, counted in messages.
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
    /// Number of failed deliveries to consumers.
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
