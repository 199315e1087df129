//! Converts the messages of a send to rows that the store can append. Adds the properties that a broker adds.
//!
//! Source: `SendMessageProcessor.asyncSendMessage`, `TransactionalMessageBridge.parseHalfMessageInner`, `MessageExtBatchEncoder`,
//! `MessageDecoder.encodeMessage`, `CommitLog.MessageExtBatchEncoder.encode`.
use crate::headers::SendHeader;
use rmqfast_store::format::host::Host;
use rmqfast_store::format::java::in_map_order;
use rmqfast_store::format::properties;
use rmqfast_store::store::append::{Pair, Row, Rows};

/// Property that says whether the producer waits until the message is on the disk. Only the broker uses it.
pub const WAIT: &[u8] = b"WAIT";
/// Property of a half message, the first phase of a transaction.
pub const TRAN_MSG: &[u8] = b"TRAN_MSG";
/// Topic that stores half messages.
pub const HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
pub const DELAY: &[u8] = b"DELAY";
const CLUSTER: &[u8] = b"CLUSTER";
const REAL_TOPIC: &[u8] = b"REAL_TOPIC";
const REAL_QID: &[u8] = b"REAL_QID";
const TRANSACTION_MASK: i32 = 0xC;

pub type Property<'a> = (&'a [u8], &'a [u8]);

/// Returns the properties of the request and the properties that the broker adds, in the order of Java's map.
pub fn with_cluster<'a>(header: &SendHeader<'a>, cluster: &'a str) -> Vec<Property<'a>> {
    let own = [(CLUSTER, cluster.as_bytes())];
    in_map_order(properties::iter(header.properties.as_bytes()).chain(own))
}

/// Returns the properties to store. WAIT is left out, since only this broker needs it. For a delayed message WAIT
/// moves to the end, because Java removes it from a map and puts it back.
pub fn without_wait(mut properties: Vec<Property<'_>>) -> Vec<Property<'_>> {
    // level 0 means no delay
    let is_delayed = value(&properties, DELAY).is_some_and(|level| level != b"0");
    let Some(at) = properties.iter().position(|(name, _)| *name == WAIT) else { return properties };
    let wait = properties.remove(at);
    properties.extend(Some(wait).filter(|_| is_delayed));
    properties
}

pub fn value<'a>(properties: &[Property<'a>], name: &[u8]) -> Option<&'a [u8]> {
    properties.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
}

#[derive(Debug)]
pub struct ParsedSend<'a> {
    /// The header. Its topic and queue are those in which the message is stored. They may differ from those in the
    /// request.
    pub header: SendHeader<'a>,
    pub body: &'a [u8],
    pub born_host: Host,
    pub properties: Vec<Property<'a>>,
}

impl<'a> ParsedSend<'a> {
    /// Converts the message to a half message. Its topic and queue become properties.
    pub fn into_half(self, queue_id: &'a str) -> Self {
        let own = [(REAL_TOPIC, self.header.topic.as_bytes()), (REAL_QID, queue_id.as_bytes())];
        let properties = in_map_order(self.properties.into_iter().chain(own));
        // prepared messages are not indexed, but half messages are read through their queue, so the bits are cleared
        let sys_flag = self.header.sys_flag & !TRANSACTION_MASK;
        let header = SendHeader { topic: HALF_TOPIC, queue_id: 0, sys_flag, ..self.header };
        Self { header, properties, ..self }
    }
}

impl Rows for ParsedSend<'_> {
    fn len(&self) -> usize {
        1
    }

    #[inline]
    fn row(&self, _index: usize) -> Row<'_> {
        row_of(&self.header, self.born_host, self.header.flag, self.body, 0..self.properties.len())
    }

    #[inline]
    fn pair(&self, index: usize) -> Pair<'_> {
        let (name, value) = self.properties[index];
        (name, Some(value))
    }
}

#[derive(Debug)]
pub struct ParsedBatch<'a> {
    header: SendHeader<'a>,
    messages: Vec<BatchMessage<'a>>,
    born_host: Host,
    properties: Vec<Property<'a>>,
    /// For each message, the end of its properties in the list of properties.
    ends: Vec<usize>,
}

impl<'a> ParsedBatch<'a> {
    /// Creates the batch. The properties of each message are its own and those in `common`, which the request has for
    /// all messages.
    pub fn new(
        header: SendHeader<'a>,
        messages: Vec<BatchMessage<'a>>,
        born_host: Host,
        common: &[Property<'a>],
    ) -> Self {
        let mut properties = Vec::with_capacity(messages.len() * (common.len() + 4));
        let mut ends = Vec::with_capacity(messages.len());
        for message in &messages {
            // names may repeat, as in Java: properties of the batch are not removed
            properties.extend(properties::iter(message.properties));
            properties.extend_from_slice(common);
            ends.push(properties.len());
        }
        Self { header, messages, born_host, properties, ends }
    }
}

impl Rows for ParsedBatch<'_> {
    fn len(&self) -> usize {
        self.messages.len()
    }

    #[inline]
    fn row(&self, index: usize) -> Row<'_> {
        let message = &self.messages[index];
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        row_of(&self.header, self.born_host, message.flag, message.body, start..self.ends[index])
    }

    #[inline]
    fn pair(&self, index: usize) -> Pair<'_> {
        let (name, value) = self.properties[index];
        (name, Some(value))
    }
}

#[inline]
fn row_of<'a>(
    header: &SendHeader<'a>,
    born_host: Host,
    flag: i32,
    body: &'a [u8],
    pairs: std::ops::Range<usize>,
) -> Row<'a> {
    Row {
        topic: Some(header.topic.as_bytes()),
        body: Some(body),
        // tags and keys are already among the properties, in Java's order
        tags: None,
        keys: None,
        pairs,
        queue_id: header.queue_id.into(),
        flag: flag.into(),
        born_timestamp: Some(header.born_timestamp),
        born_host: Some(born_host),
        sys_flag: header.sys_flag.into(),
        reconsume_times: header.reconsume_times.into(),
        // only set for a committed transaction, which the control plane stores
        prepared_transaction_offset: 0,
        is_due: false,
    }
}

const MIN_LEN: usize = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMessage<'a> {
    pub flag: i32,
    pub body: &'a [u8],
    pub properties: &'a [u8],
}

// The body of a SEND_BATCH_MESSAGE request: int32 total size, magic, CRC, flag, body length; body; int16 properties length;
// properties; again and again. Source: `MessageDecoder.encodeMessage`, `CommitLog.MessageExtBatchEncoder.encode`.

/// Parses all messages of a batch. Returns `None` for invalid bytes.
pub fn batch_messages(mut bytes: &[u8]) -> Option<Vec<BatchMessage<'_>>> {
    // the capacity is a guess from the body's size, not from lengths in it, which a client could forge
    let mut messages = Vec::with_capacity(bytes.len() / 1024 + 1);
    while !bytes.is_empty() {
        let size = usize::try_from(i32::from_be_bytes(*bytes.first_chunk()?)).ok().filter(|size| *size >= MIN_LEN)?;
        let (message, rest) = bytes.split_at_checked(size)?;
        // skips size, magic and CRC: producers send zero for the last two, and the store computes its own
        messages.push(message_of(message.get(12..)?)?);
        bytes = rest;
    }
    // an empty body is no batch
    (!messages.is_empty()).then_some(messages)
}

/// Parses a message. `bytes` begins with its flag. Returns `None` for invalid bytes.
fn message_of(bytes: &[u8]) -> Option<BatchMessage<'_>> {
    let (flag, bytes) = bytes.split_first_chunk()?;
    let (length, bytes) = bytes.split_first_chunk()?;
    let (body, bytes) = bytes.split_at_checked(usize::try_from(i32::from_be_bytes(*length)).ok()?)?;
    let (length, properties) = bytes.split_first_chunk()?;
    let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
    // the properties must end exactly where the message ends
    (length == properties.len()).then(|| BatchMessage { flag: i32::from_be_bytes(*flag), body, properties })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(flag: i32, body: &[u8], properties: &[u8]) -> Vec<u8> {
        let size = (MIN_LEN + body.len() + properties.len()) as i32;
        let mut out = Vec::new();
        for number in [size, 0, 0, flag, body.len() as i32] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(body);
        out.extend_from_slice(&(properties.len() as i16).to_be_bytes());
        out.extend_from_slice(properties);
        out
    }

    #[test]
    fn messages_stand_one_behind_the_other() {
        let bytes = [encoded(1, b"a", b"k\x01v"), encoded(-2, b"", b"")].concat();
        let expected = [
            BatchMessage { flag: 1, body: b"a", properties: b"k\x01v" },
            BatchMessage { flag: -2, body: b"", properties: b"" },
        ];
        assert_eq!(batch_messages(&bytes).as_deref(), Some(&expected[..]));
    }

    #[test]
    fn what_is_cut_or_lies_about_a_length_is_no_batch() {
        let whole = encoded(0, b"body", b"k\x01v");
        assert!((0..whole.len()).all(|end| batch_messages(&whole[..end]).is_none()));
        for at in [0, 1, 2, 3, 16, 17, 18, 19, 24, 25] {
            for byte in [0x00, 0x7F, 0x80, 0xFF] {
                let mut wrong = whole.clone();
                if std::mem::replace(&mut wrong[at], byte) != byte {
                    assert!(batch_messages(&wrong).is_none(), "{at}: {byte}");
                }
            }
        }
    }
}
