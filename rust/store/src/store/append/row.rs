//! A message to append as the caller passes it, unchecked.
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
    /// Number of failed deliveries to consumers.
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
