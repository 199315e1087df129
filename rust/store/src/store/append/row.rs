//! A message that is to be stored, as the caller has it: nothing is checked yet.
use crate::format::host::Host;
use std::ops::Range;

#[derive(Clone, Debug)]
pub struct Row<'a> {
    pub topic: Option<&'a [u8]>,
    /// Its body, stored as it is.
    pub body: Option<&'a [u8]>,
    /// Its tag; wins over a property `TAGS`.
    pub tags: Option<&'a [u8]>,
    /// Its keys; win over a property `KEYS`.
    pub keys: Option<&'a [u8]>,
    /// Which [`pair`](Rows::pair)s are its properties.
    pub pairs: Range<usize>,
    /// Queue of the topic.
    pub queue_id: i64,
    /// The user's 32 bits.
    pub flag: i64,
    /// Milliseconds; the time of the append unless given.
    pub born_timestamp: Option<i64>,
    /// Who sent it; the store itself unless given.
    pub born_host: Option<Host>,
    /// Transaction type and compression; the bits of the hosts follow from these.
    pub sys_flag: i64,
    /// How often it was consumed in vain.
    pub reconsume_times: i64,
    /// Physical offset of the half message, or 0.
    pub prepared_transaction_offset: i64,
    /// A property `DELAY` is history: the time has come.
    pub is_due: bool,
}

/// Name and value of a property; one without a value is not stored, as in Java.
pub type Pair<'a> = (&'a [u8], Option<&'a [u8]>);

/// A batch of messages.
pub trait Rows {
    fn len(&self) -> usize;
    fn row(&self, index: usize) -> Row<'_>;
    /// A property of one of them.
    fn pair(&self, index: usize) -> Pair<'_>;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
