//! Checks the values of a row. An error names the wrong value, and has a name in RocketMQ (`PutMessageStatus`).
//!
//! Source: `DefaultMessageStore.checkMessage`, `TopicValidator.validateTopic`, `HookUtils.checkBeforePutMessage` (5.x),
//! `PutMessageStatus`, `DefaultMessageStore.checkStoreStatus`, `checkMessage`, `checkMessages`.
use super::rows::{Row, Rows};
use crate::Error;
use crate::format::message::{TRANSACTION_MASK, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK};
use crate::format::names::{MAX_TOPIC, RETRY_PREFIX, is_legal};
use crate::format::properties::{KnownProperties, MULTI_DISPATCH, NAME_END, PROPERTY_END};
use crate::store::consume_queue::is_directory_name;
use crate::store::delay::{DELAY_TOPIC, Delay, DelayLevels};

const MAX_RETRY_TOPIC: usize = 255;
/// Used as a subject in errors about properties that have too many bytes, but not too many characters.
pub const PROPERTIES_SIZE: &str = "properties size";
/// Used as a subject in errors about too many light message queues.
pub const TOO_MANY_QUEUES: &str = "INNER_MULTI_DISPATCH";

#[derive(Debug)]
pub struct Fault {
    what: &'static str,
    expected: String,
    got: String,
}

pub fn fault(what: &'static str, expected: impl Into<String>, got: impl ToString) -> Fault {
    Fault { what, expected: expected.into(), got: got.to_string() }
}

impl Fault {
    /// Converts the fault to an error, with the number of the row unless it is the only row.
    pub fn of_row(self, row: usize, is_only: bool) -> Error {
        let expected = if is_only { self.expected } else { format!("in row {row} {}", self.expected) };
        Error::Invalid { what: self.what, expected, got: self.got }
    }
}

#[inline]
pub fn topic_of<'a>(row: &Row<'a>, long_topics: bool) -> Result<&'a str, Fault> {
    let topic = row.topic.ok_or_else(|| fault("topic", TOPIC_EXPECTED, "null"))?;
    // A retry topic contains the name of its group, so 5.x allows more bytes for it.
    let is_long = long_topics && topic.starts_with(RETRY_PREFIX.as_bytes());
    let most = if is_long { MAX_RETRY_TOPIC } else { MAX_TOPIC };
    let text = std::str::from_utf8(topic).ok().filter(|_| is_legal(topic) && topic.len() <= most);
    let Some(text) = text else {
        return Err(fault("topic", TOPIC_EXPECTED, format!("{:?}", String::from_utf8_lossy(topic))));
    };
    // Only the append itself moves messages into the delay topic.
    if text == DELAY_TOPIC {
        let expected = "a topic of one's own, with a property DELAY to have it delayed";
        return Err(fault("topic", expected, format!("{text:?}")));
    }
    Ok(text)
}

const TOPIC_EXPECTED: &str = "1 to 127 characters of %|a-zA-Z0-9_-";

pub fn check_queue_name(name: &str) -> Result<(), Fault> {
    if is_directory_name(name) && name != DELAY_TOPIC {
        return Ok(());
    }
    Err(fault(MULTI_DISPATCH, "names of queues, with commas between", format!("{name:?}")))
}

/// Returns whether a queue lists messages with this system flag.
#[inline]
pub fn is_dispatched(sys_flag: i32) -> bool {
    !matches!(sys_flag & TRANSACTION_MASK, TRANSACTION_PREPARED | TRANSACTION_ROLLBACK)
}

#[inline]
pub fn check_numbers(row: &Row<'_>) -> Result<(), Fault> {
    number_of("flag", row.flag, i32::MIN.into())?;
    number_of("sys_flag", row.sys_flag, i32::MIN.into())?;
    // The other two may be negative, since Java uses all 32 bits of them.
    number_of("reconsume_times", row.reconsume_times, 0).map(drop)
}

/// Converts a value to the 32-bit number that a record stores. Fails if the value is below `least` or does not fit.
#[inline]
pub fn number_of(what: &'static str, value: i64, least: i64) -> Result<i32, Fault> {
    let number = i32::try_from(value).ok().filter(|number| i64::from(*number) >= least);
    number.ok_or_else(|| fault(what, format!("{least} to {}", i32::MAX), value))
}

/// Checks that all properties are UTF-8, and that `encoded` contains no separators other than those of `count`
/// properties.
#[inline]
pub fn check_properties<R: Rows>(rows: &R, row: &Row<'_>, encoded: &[u8], count: usize) -> Result<(), Fault> {
    // One pass is enough for valid properties. The wrong property is only searched if there is one.
    let separators = encoded.iter().filter(|b| matches!(**b, NAME_END | PROPERTY_END)).count();
    // Properties without a name or value are skipped by the parser, so the count shows them.
    let parsed = crate::format::properties::iter(encoded).count();
    if separators == (2 * count).saturating_sub(1) && parsed == count && std::str::from_utf8(encoded).is_ok() {
        return Ok(());
    }
    let pairs = row.pairs.clone().map(|index| rows.pair(index));
    let pairs = pairs.filter_map(|(name, value)| Some((name, value?)));
    let columns = [(&b"KEYS"[..], row.keys), (b"TAGS", row.tags)].into_iter().filter_map(|(n, v)| Some((n, v?)));
    let is_bad =
        |part: &[u8]| part.is_empty() || std::str::from_utf8(part).is_err() || part.iter().any(|b| matches!(b, 1 | 2));
    let bad = columns.chain(pairs).find(|(name, value)| is_bad(name) || is_bad(value)).unwrap_or_default();
    let text = |part| String::from_utf8_lossy(part).into_owned();
    let expected = "names and values that are text, not empty, and without U+0001 and U+0002";
    Err(fault("properties", expected, format!("{:?}={:?}", text(bad.0), text(bad.1))))
}

#[inline]
pub fn delay_of(known: KnownProperties<'_>, levels: &DelayLevels) -> Result<Option<Delay>, Fault> {
    let Some(value) = known.delay else { return Ok(None) };
    let text = || format!("{:?}", String::from_utf8_lossy(value));
    let expected = || format!("a delay level as a number, 0 to {}", levels.max());
    Delay::parse(value, levels).map_err(|_| fault("property DELAY", expected(), text()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMessageStatus {
    PutOk,
    FlushDiskTimeout,
    ServiceNotAvailable,
    CreateMapedFileFailed,
    MessageIllegal,
    PropertiesSizeExceeded,
    OsPagecacheBusy,
    LmqConsumeQueueNumExceeded,
    UnknownError,
}

impl PutMessageStatus {
    pub fn of(error: &Error) -> Self {
        match error {
            Error::FlushTimeout { .. } => Self::FlushDiskTimeout,
            Error::NotWritable { .. } => Self::ServiceNotAvailable,
            Error::Busy { .. } => Self::OsPagecacheBusy,
            Error::Io { .. } | Error::NoRoom { .. } => Self::CreateMapedFileFailed,
            Error::Invalid { what: PROPERTIES_SIZE, .. } => Self::PropertiesSizeExceeded,
            Error::Invalid { what: TOO_MANY_QUEUES, .. } => Self::LmqConsumeQueueNumExceeded,
            Error::Invalid { .. } => Self::MessageIllegal,
            _ => Self::UnknownError,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::PutOk => "PUT_OK",
            Self::FlushDiskTimeout => "FLUSH_DISK_TIMEOUT",
            Self::ServiceNotAvailable => "SERVICE_NOT_AVAILABLE",
            Self::CreateMapedFileFailed => "CREATE_MAPEDFILE_FAILED",
            Self::MessageIllegal => "MESSAGE_ILLEGAL",
            Self::PropertiesSizeExceeded => "PROPERTIES_SIZE_EXCEEDED",
            Self::OsPagecacheBusy => "OS_PAGECACHE_BUSY",
            Self::LmqConsumeQueueNumExceeded => "LMQ_CONSUME_QUEUE_NUM_EXCEEDED",
            Self::UnknownError => "UNKNOWN_ERROR",
        }
    }
}
