//! Encodes a new record.
use super::fields::{BLANK_MAGIC, BORN_HOST_V6, MAGIC_V1, MAGIC_V2, MIN_BLANK_LEN, MIN_LEN, STORE_HOST_V6, body_crc};
use crate::format::host::Host;
use crate::format::malformed::{Expected, Malformed};
use crate::format::properties;

/// The values of a new record; lengths, magic and CRC follow from them.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    /// Queue number within the topic.
    pub queue_id: i32,
    pub flag: i32,
    /// The message's number in its queue.
    pub queue_offset: i64,
    /// The record's own offset in the log.
    pub physical_offset: i64,
    /// `encode` sets the bits of the host families.
    pub sys_flag: i32,
    /// Milliseconds since 1970, like the store timestamp.
    pub born_timestamp: i64,
    pub born_host: Host,
    pub store_timestamp: i64,
    pub store_host: Host,
    /// Number of failed deliveries to a consumer.
    pub reconsume_times: i32,
    /// Physical offset of the half message, or 0.
    pub prepared_transaction_offset: i64,
    /// The stored bytes, compressed if `sys_flag` says so.
    pub body: &'a [u8],
    /// Up to 127 bytes make a V1 record, more a V2 record.
    pub topic: &'a str,
    pub properties: &'a [u8],
}

impl NewMessage<'_> {
    /// Bytes that [`encode`](Self::encode) appends.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        let hosts = self.born_host.encoded_len() + self.store_host.encoded_len();
        MIN_LEN - 16 + hosts + self.body.len() + self.topic_width() - 1 + self.topic.len() + self.properties.len()
    }

    /// Appends the record, and fills in the property CRC if `properties` reserve one. Fails if a part is longer than its length field
    /// allows.
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
        // Last: it covers offsets and times, which are final only now.
        if properties::check_crc(&out[start..]).is_some() {
            properties::seal_crc(&mut out[start..]);
        }
        Ok(())
    }

    fn encode_head(&self, out: &mut Vec<u8>) {
        let families = if self.born_host.ip.is_ipv6() { BORN_HOST_V6 } else { 0 }
            | if self.store_host.ip.is_ipv6() { STORE_HOST_V6 } else { 0 };
        // Of the addresses, not of the caller: `asyncPutMessage` sets them as well.
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

/// Whether a record of `size` bytes fits into the `room` bytes left in a file. Room for a blank one always remains, so a file is never
/// filled to its last byte (`CommitLog.DefaultAppendMessageCallback.doAppend`).
#[inline]
pub fn has_room(room: u64, size: u64) -> bool {
    size.saturating_add(MIN_BLANK_LEN as u64) <= room
}

/// The 8 bytes that end a file with `remaining` bytes left (`CommitLog.DefaultAppendMessageCallback.doAppend`).
pub fn encode_blank(remaining: u32) -> [u8; MIN_BLANK_LEN] {
    let mut out = [0; MIN_BLANK_LEN];
    out[..4].copy_from_slice(&remaining.to_be_bytes());
    out[4..].copy_from_slice(&BLANK_MAGIC.to_be_bytes());
    out
}
