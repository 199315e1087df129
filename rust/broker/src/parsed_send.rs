//! Converts the messages of a send to rows that the store can append. Adds the properties that a broker adds.
//!
//! Source: `SendMessageProcessor.asyncSendMessage`, `TransactionalMessageBridge.parseHalfMessageInner`, `MessageExtBatchEncoder`.
use crate::batch_body::BatchMessage;
use crate::send_header::SendHeader;
use rmqfast_store::format::host::Host;
use rmqfast_store::format::java_map::in_map_order;
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
/// Bits of the system flag for the type of transaction.
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
    /// The header. Its topic and queue are those in which the message is stored, which may differ from the request.
    pub header: SendHeader<'a>,
    pub body: &'a [u8],
    pub born_host: Host,
    /// Properties in the order in which they are stored.
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
    /// Adds the properties of the batch to the properties of each message.
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
