//! Messages to append as the caller passes them, unchecked: one row, a batch of rows, and rows from values.
use crate::format::host::Host;
use std::ops::Range;

#[derive(Clone, Debug)]
pub struct Row<'a> {
    pub topic: Option<&'a [u8]>,
    pub body: Option<&'a [u8]>,
    /// Tag of the message. Overrides a property `TAGS`.
    pub tags: Option<&'a [u8]>,
    /// Keys of the message, separated by spaces. Overrides a property `KEYS`.
    pub keys: Option<&'a [u8]>,
    /// Numbers of the message's properties, for [`pair`](Rows::pair).
    pub pairs: Range<usize>,
    pub queue_id: i64,
    pub flag: i64,
    /// Time of creation in milliseconds since 1970; by default the time of the append.
    pub born_timestamp: Option<i64>,
    /// Host that sent the message; by default the store host.
    pub born_host: Option<Host>,
    /// Transaction type and compression. The append sets the bits of the host families.
    pub sys_flag: i64,
    pub reconsume_times: i64,
    /// Physical offset of the half message, or 0.
    pub prepared_transaction_offset: i64,
    /// Whether the delay in a property `DELAY` is over. If so, the property is ignored.
    pub is_due: bool,
}

/// Name and value of a property. As in Java, a property without a value is not stored.
pub type Pair<'a> = (&'a [u8], Option<&'a [u8]>);

/// A batch of messages to append.
pub trait Rows {
    fn len(&self) -> usize;
    fn row(&self, index: usize) -> Row<'_>;
    fn pair(&self, index: usize) -> Pair<'_>;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A message to append that owns its parts. See [`Row`] for the fields.
#[derive(Clone, Debug, Default)]
pub struct OwnedMessage {
    pub topic: String,
    pub body: Vec<u8>,
    pub tags: Option<String>,
    pub keys: Option<String>,
    pub properties: Vec<(String, String)>,
    pub queue_id: i64,
    pub flag: i64,
    pub born_timestamp: Option<i64>,
    pub born_host: Option<Host>,
    pub sys_flag: i64,
    pub reconsume_times: i64,
    pub prepared_transaction_offset: i64,
}

#[derive(Clone, Debug, Default)]
pub struct Messages {
    messages: Vec<OwnedMessage>,
    pairs: Vec<(String, String)>,
    /// For each message, the end of its properties in `pairs`.
    ends: Vec<usize>,
}

impl Messages {
    pub fn new(mut messages: Vec<OwnedMessage>) -> Self {
        let (mut pairs, mut ends) = (Vec::new(), Vec::with_capacity(messages.len()));
        for message in &mut messages {
            // All properties are in one list, so that a row refers to its own by their numbers.
            pairs.append(&mut message.properties);
            ends.push(pairs.len());
        }
        Self { messages, pairs, ends }
    }
}

impl Rows for Messages {
    fn len(&self) -> usize {
        self.messages.len()
    }

    fn row(&self, index: usize) -> Row<'_> {
        let message = &self.messages[index];
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Row {
            topic: Some(message.topic.as_bytes()),
            body: Some(&message.body),
            tags: message.tags.as_deref().map(str::as_bytes),
            keys: message.keys.as_deref().map(str::as_bytes),
            pairs: start..self.ends[index],
            queue_id: message.queue_id,
            flag: message.flag,
            born_timestamp: message.born_timestamp,
            born_host: message.born_host,
            sys_flag: message.sys_flag,
            reconsume_times: message.reconsume_times,
            prepared_transaction_offset: message.prepared_transaction_offset,
            is_due: false,
        }
    }

    fn pair(&self, index: usize) -> Pair<'_> {
        let (name, value) = &self.pairs[index];
        (name.as_bytes(), Some(value.as_bytes()))
    }
}
