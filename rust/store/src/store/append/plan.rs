//! The first look at a batch: every row is checked, its record's size and its queue are known, and nothing is written.
//!
//! Source: `DefaultMessageStore.checkMessage`, `CommitLog.MessageExtEncoder.encode`, `TopicValidator.validateTopic`.
use super::delay::{DELAY_TOPIC, Delay};
use super::properties::{self, Named};
use super::queue_table::QueueTable;
use super::row::{Row, Rows};
use crate::format::message::{MIN_BLANK_LEN, MIN_LEN};
use crate::format::properties::{MAX_LEN, NAME_END, PROPERTY_END};
use crate::format::tag::tags_code;
use crate::{Error, Result};

/// The longest topic that a record of 4.9 can tell.
const MAX_TOPIC: usize = i8::MAX as usize;

/// What a row may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a body.
    pub max_body: usize,
    /// Bytes of a commit-log file.
    pub file_size: u64,
    /// Bytes that the two hosts of a record take.
    pub hosts_len: usize,
}

/// A row that was checked.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// Bytes of its record.
    pub size: u32,
    /// Number of its queue in the table.
    pub queue: u32,
    /// What its consume-queue unit says beside the place of the record.
    pub tags_code: i64,
    /// Its delay.
    pub delay: Option<Delay>,
}

/// A batch that was checked.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Its rows.
    pub rows: Vec<Planned>,
    /// Index entries that they need.
    pub keys: usize,
}

impl Plan {
    /// Checks `rows`, and counts them where `queues` will need room; `first_row` is the number of the first one in errors.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the first row that cannot be stored.
    pub fn new<R: Rows>(
        rows: &R,
        limits: Limits,
        queues: &mut QueueTable,
        store_ms: i64,
        first_row: usize,
    ) -> Result<Self> {
        let mut plan = Self { rows: Vec::with_capacity(rows.len()), keys: 0 };
        let mut scratch = Vec::new();
        for index in 0..rows.len() {
            let row = rows.row(index);
            let planned = plan.check(rows, &row, limits, queues, store_ms, &mut scratch);
            let planned =
                planned.map_err(|fault| fault.of_row(first_row + index, rows.len() == 1 && first_row == 0))?;
            queues.plan(planned.queue);
            plan.rows.push(planned);
        }
        Ok(plan)
    }

    #[inline]
    fn check<'a, R: Rows>(
        &mut self,
        rows: &'a R,
        row: &Row<'a>,
        limits: Limits,
        queues: &mut QueueTable,
        store_ms: i64,
        scratch: &mut Vec<u8>,
    ) -> Result<Planned, Fault> {
        let topic = topic_of(row)?;
        let queue_id = number_of("queue_id", row.queue_id, 0)?;
        number_of("flag", row.flag, i32::MIN.into())?;
        let body = row.body.ok_or_else(|| fault("body", "bytes", "null"))?;
        if body.len() > limits.max_body {
            return Err(fault("body", format!("at most {} bytes (max_message_size)", limits.max_body), body.len()));
        }
        let (named, count) = properties::encode(rows, row, scratch);
        check_properties(rows, row, scratch, count)?;
        let delay = delay_of(named)?;
        let (topic, queue_id) = match delay {
            Some(delay) => {
                properties::encode_delayed(rows, row, delay, scratch);
                (DELAY_TOPIC, delay.queue_id())
            }
            None => (topic, queue_id),
        };
        if scratch.len() > MAX_LEN {
            return Err(fault("properties", format!("at most {MAX_LEN} bytes"), scratch.len()));
        }
        let size = MIN_LEN - 16 + limits.hosts_len + body.len() + topic.len() + scratch.len();
        let room = limits.file_size - MIN_BLANK_LEN as u64;
        if size as u64 > room {
            return Err(fault("message", format!("a record of at most {room} bytes (file_size)"), size));
        }
        self.keys += usize::from(named.uniq_key.is_some()) + tokens(named.keys).count();
        let tags_code = match delay {
            Some(delay) => delay.deliver_timestamp(store_ms),
            None => tags_code(named.tags.and_then(|tags| std::str::from_utf8(tags).ok())),
        };
        Ok(Planned { size: size as u32, queue: queues.find(topic, queue_id), tags_code, delay })
    }
}

/// The keys of a message: `KEYS`, cut at spaces.
#[inline]
pub fn tokens(keys: Option<&[u8]>) -> impl Iterator<Item = &[u8]> {
    keys.into_iter().flat_map(|keys| keys.split(|b| *b == b' ')).filter(|key| !key.is_empty())
}

/// What is wrong with a row.
#[derive(Debug)]
struct Fault {
    what: &'static str,
    expected: String,
    got: String,
}

fn fault(what: &'static str, expected: impl Into<String>, got: impl ToString) -> Fault {
    Fault { what, expected: expected.into(), got: got.to_string() }
}

impl Fault {
    fn of_row(self, row: usize, is_only: bool) -> Error {
        let expected = if is_only { self.expected } else { format!("in row {row} {}", self.expected) };
        Error::Invalid { what: self.what, expected, got: self.got }
    }
}

#[inline]
fn topic_of<'a>(row: &Row<'a>) -> Result<&'a str, Fault> {
    let expected = || "1 to 127 characters of %|a-zA-Z0-9_-";
    let topic = row.topic.ok_or_else(|| fault("topic", expected(), "null"))?;
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'%' | b'|' | b'_' | b'-');
    let text = std::str::from_utf8(topic).ok().filter(|t| !t.is_empty() && t.len() <= MAX_TOPIC);
    let Some(text) = text.filter(|_| topic.iter().all(is_name)) else {
        return Err(fault("topic", expected(), format!("{:?}", String::from_utf8_lossy(topic))));
    };
    if text == DELAY_TOPIC {
        let expected = "a topic of one's own, with a property DELAY to have it delayed";
        return Err(fault("topic", expected, format!("{text:?}")));
    }
    Ok(text)
}

#[inline]
fn number_of(what: &'static str, value: i64, least: i64) -> Result<i32, Fault> {
    let number = i32::try_from(value).ok().filter(|number| i64::from(*number) >= least);
    number.ok_or_else(|| fault(what, format!("{least} to {}", i32::MAX), value))
}

/// All properties at once: text, with exactly the separators between and within them.
#[inline]
fn check_properties<R: Rows>(rows: &R, row: &Row<'_>, encoded: &[u8], count: usize) -> Result<(), Fault> {
    let separators = encoded.iter().filter(|b| matches!(**b, NAME_END | PROPERTY_END)).count();
    let found = crate::format::properties::iter(encoded).count();
    if separators == (2 * count).saturating_sub(1) && found == count && std::str::from_utf8(encoded).is_ok() {
        return Ok(());
    }
    let given = row.pairs.clone().map(|index| rows.pair(index));
    let given = given.filter_map(|(name, value)| Some((name, value?)));
    let columns = [(&b"KEYS"[..], row.keys), (b"TAGS", row.tags)].into_iter().filter_map(|(n, v)| Some((n, v?)));
    let is_bad =
        |part: &[u8]| part.is_empty() || std::str::from_utf8(part).is_err() || part.iter().any(|b| matches!(b, 1 | 2));
    let bad = columns.chain(given).find(|(name, value)| is_bad(name) || is_bad(value)).unwrap_or_default();
    let text = |part| String::from_utf8_lossy(part).into_owned();
    let expected = "names and values that are text, not empty, and without U+0001 and U+0002";
    Err(fault("properties", expected, format!("{:?}={:?}", text(bad.0), text(bad.1))))
}

fn delay_of(named: Named<'_>) -> Result<Option<Delay>, Fault> {
    let Some(value) = named.delay else { return Ok(None) };
    let text = || format!("{:?}", String::from_utf8_lossy(value));
    Delay::parse(value).map_err(|_| fault("property DELAY", "a delay level as a number, 0 to 18", text()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::append::{Messages, OwnedMessage};

    const LIMITS: Limits = Limits { max_body: 10, file_size: 300, hosts_len: 16 };

    fn plan(change: impl Fn(&mut OwnedMessage)) -> Result<Plan> {
        let mut message = OwnedMessage { topic: "T".into(), ..OwnedMessage::default() };
        change(&mut message);
        let rows = Messages::new(vec![OwnedMessage { topic: "T".into(), ..OwnedMessage::default() }, message]);
        Plan::new(&rows, LIMITS, &mut QueueTable::new("nowhere".into(), 20), 0, 40)
    }

    fn with_property(name: &str, value: &str) -> Result<Plan> {
        plan(|m| m.properties = vec![(name.into(), value.into())])
    }

    #[test]
    fn sizes_and_keys_are_known_before_anything_is_written() {
        let plan = plan(|m| {
            m.keys = Some(" a  b ".into());
            m.properties = vec![("UNIQ_KEY".into(), "U".into())];
        });
        let plan = plan.expect("sound");
        assert_eq!(plan.keys, 3);
        assert_eq!(plan.rows.iter().map(|r| r.size).collect::<Vec<_>>(), [92, 92 + 11 + 1 + 10]);
    }

    #[test]
    fn a_row_that_cannot_be_stored_is_named() {
        let long = "t".repeat(128);
        let faults = [
            plan(|m| m.topic = String::new()),
            plan(|m| m.topic = "a b".into()),
            plan(|m| m.topic.clone_from(&long)),
            plan(|m| m.topic = DELAY_TOPIC.into()),
            plan(|m| m.body = vec![0; 11]),
            plan(|m| m.queue_id = -1),
            plan(|m| m.queue_id = 1 << 31),
            plan(|m| m.flag = 1 << 31),
            plan(|m| m.tags = Some(String::new())),
            with_property("a", ""),
            with_property("", "a"),
            with_property("a\u{1}b", "c"),
            with_property("a", "b\u{2}c"),
            with_property("DELAY", "soon"),
            with_property("a", &"v".repeat(40_000)),
            with_property("a", &"v".repeat(250)),
        ];
        for fault in faults {
            let text = fault.expect_err("a fault").to_string();
            assert!(text.contains("in row 41"), "{text}");
        }
    }
}
