//! Plans a batch before anything is written. Checks every row, and computes the size of its record and its queue.
//!
//! Source: `CommitLog.asyncPutMessage`, `CommitLog.MessageExtEncoder.encode`, `MultiDispatch.wrapMultiDispatch`,
//! `DefaultMessageStore.checkMessages`, `CommitLog.asyncPutMessages`, `MessageDecoder.encodeMessage`.
use super::index_writer::key_hash;
use super::options::AppendOptions;
use super::properties;
use super::queue_table::QueueTable;
use super::row_check::{
    Fault, PROPERTIES_SIZE, TOO_MANY_QUEUES, check_numbers, check_properties, check_queue_name, delay_of, fault,
    is_dispatched, number_of, topic_of,
};
use super::rows::{Row, Rows};
use crate::format::java::tags_code;
use crate::format::message::{MIN_BLANK_LEN, MIN_LEN, TRANSACTION_MASK, TRANSACTION_ROLLBACK};
use crate::format::names::MAX_TOPIC;
use crate::format::properties::{KnownProperties, MAX_LEN};
use crate::store::consume_queue::{LMQ, multi_dispatch_queues};
use crate::store::delay::DELAY_TOPIC;
use crate::{Error, Result};

/// A checked row. Its parts in the lists of the plan end at the fields `..._end`, and begin at the ends of the row
/// before it.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRow {
    pub size: u32,
    pub queue: u32,
    /// Offset in the queue; 0 if no queue lists the message.
    pub queue_offset: i64,
    pub is_dispatched: bool,
    pub tags_code: i64,
    properties_end: usize,
    keys_end: usize,
    extra_end: usize,
}

/// A checked batch. It contains everything to write, except for bodies and physical offsets.
#[derive(Debug, Default)]
pub struct Plan {
    pub rows: Vec<PlannedRow>,
    properties: Vec<u8>,
    keys: Vec<i32>,
    extra_queues: Vec<u32>,
}

/// The additional queues that a property of a row names.
struct ExtraQueues<'a> {
    names: &'a str,
    queue_id: i32,
    is_dispatched: bool,
    /// Start of the row's property string in the list of properties.
    start: usize,
}

/// The parts of one row in the lists of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    pub properties: &'a [u8],
    /// Hashes of the row's index keys.
    pub keys: &'a [i32],
    /// Numbers of the additional queues that list the row.
    pub extra_queues: &'a [u32],
}

impl Plan {
    /// Checks `rows` and plans them in `queues`. `first_row` is the number of the first row in errors.
    pub fn fill<R: Rows>(
        &mut self,
        rows: &R,
        options: &AppendOptions,
        queues: &mut QueueTable,
        store_ms: i64,
        first_row: usize,
    ) -> Result<()> {
        self.rows.clear();
        self.properties.clear();
        self.keys.clear();
        self.extra_queues.clear();
        for index in 0..rows.len() {
            let row = rows.row(index);
            let planned = self.check(rows, &row, options, queues, store_ms);
            let planned =
                planned.map_err(|fault| fault.of_row(first_row + index, rows.len() == 1 && first_row == 0))?;
            self.rows.push(planned);
        }
        Ok(())
    }

    pub fn size(&self) -> u64 {
        self.rows.iter().map(|row| u64::from(row.size)).sum()
    }

    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    #[inline]
    pub fn parts(&self, row: usize) -> Parts<'_> {
        let before = row.checked_sub(1).map(|before| &self.rows[before]);
        let start = before.map_or((0, 0, 0), |row| (row.properties_end, row.keys_end, row.extra_end));
        let row = &self.rows[row];
        Parts {
            properties: &self.properties[start.0..row.properties_end],
            keys: &self.keys[start.1..row.keys_end],
            extra_queues: &self.extra_queues[start.2..row.extra_end],
        }
    }

    /// Frees the memory that only a large batch needed.
    pub fn shrink(&mut self) {
        const MAX_BYTES: usize = 64 << 10;
        self.rows.shrink_to(MAX_BYTES / size_of::<PlannedRow>());
        self.properties.shrink_to(MAX_BYTES);
        self.keys.shrink_to(MAX_BYTES / size_of::<i32>());
    }

    #[inline]
    fn check<'a, R: Rows>(
        &mut self,
        rows: &'a R,
        row: &Row<'a>,
        options: &AppendOptions,
        queues: &mut QueueTable,
        store_ms: i64,
    ) -> Result<PlannedRow, Fault> {
        let topic = topic_of(row, options.long_topics)?;
        let queue_id = number_of("queue_id", row.queue_id, 0)?;
        check_numbers(row)?;
        let body = row.body.ok_or_else(|| fault("body", "bytes", "null"))?;
        if body.len() > options.max_message_size {
            let expected = format!("at most {} bytes (max_message_size)", options.max_message_size);
            return Err(fault("body", expected, body.len()));
        }
        let start = self.properties.len();
        let (known, count) = properties::encode(rows, row, &mut self.properties);
        check_properties(rows, row, &self.properties[start..], count)?;
        let is_dispatched = is_dispatched(row.sys_flag as i32);
        // As in `asyncPutMessage`, prepared messages and rollbacks are not delayed.
        let delay = if is_dispatched && !row.is_due { delay_of(known, &options.delay_levels)? } else { None };
        let (topic, queue_id) = match delay {
            Some(delay) => {
                properties::add_delay(row, delay, start, &mut self.properties);
                (DELAY_TOPIC, delay.queue_id())
            }
            None => (topic, queue_id),
        };
        let queue = queues.find(topic, queue_id);
        self.plan_keys(row, &known, queues.topic(queue).key_hash);
        if options.multi_dispatch
            && let Some(names) = known.multi_dispatch.and_then(|names| std::str::from_utf8(names).ok())
        {
            self.plan_extra(ExtraQueues { names, queue_id, is_dispatched, start }, options, queues)?;
        }
        let size = self.record_size(row, options, start, topic.len())?;
        Ok(PlannedRow {
            size,
            queue,
            // Prepared messages and rollbacks have offset 0 and do not advance the queue.
            queue_offset: if is_dispatched { queues.plan(queue) } else { 0 },
            is_dispatched,
            tags_code: match delay {
                // The unit of a delayed message contains the time of delivery in place of the tag's hash.
                Some(delay) => delay.deliver_timestamp(store_ms),
                None => tags_code(known.tags.and_then(|tags| std::str::from_utf8(tags).ok())),
            },
            properties_end: self.properties.len(),
            keys_end: self.keys.len(),
            extra_end: self.extra_queues.len(),
        })
    }

    #[inline]
    fn plan_keys(&mut self, row: &Row<'_>, known: &KnownProperties<'_>, topic_hash: i32) {
        // Java indexes all messages except for rollbacks, even prepared messages, which no queue lists.
        if row.sys_flag as i32 & TRANSACTION_MASK == TRANSACTION_ROLLBACK {
            return;
        }
        // Keys have the order of `buildIndex`, so that equal input gives equal files.
        for key in known.index_keys() {
            self.keys.push(key_hash(topic_hash, key));
        }
    }

    /// Plans the message in each additional queue. If a queue is named twice, it lists the message once.
    fn plan_extra(
        &mut self,
        extra: ExtraQueues<'_>,
        options: &AppendOptions,
        queues: &mut QueueTable,
    ) -> Result<(), Fault> {
        let (from, mut offsets) = (self.extra_queues.len(), Vec::new());
        for (name, queue_id) in multi_dispatch_queues(extra.names, extra.queue_id) {
            check_queue_name(name)?;
            // Checked before the queue is added to the table, because a refused queue must not count.
            let is_new_lmq = name.starts_with(LMQ) && !queues.has(name, queue_id);
            if is_new_lmq && queues.lmq_count() >= options.max_lmq_queues {
                let expected = format!("at most {} queues of multi-dispatch", options.max_lmq_queues);
                return Err(fault(TOO_MANY_QUEUES, expected, name));
            }
            let number = queues.find(name, queue_id);
            if let Some(at) = self.extra_queues[from..].iter().position(|other| *other == number) {
                offsets.push(offsets[at]);
                continue;
            }
            if extra.is_dispatched {
                offsets.push(queues.plan(number));
                self.extra_queues.push(number);
            } else {
                // As in a broker, the property contains the offset that the message would have.
                offsets.push(queues.queue(number).next_planned());
            }
        }
        let offsets: Vec<_> = offsets.iter().map(i64::to_string).collect();
        properties::add_multi_queue_offset(&offsets.join(","), extra.start, &mut self.properties);
        Ok(())
    }

    #[inline]
    fn record_size(
        &mut self,
        row: &Row<'_>,
        options: &AppendOptions,
        start: usize,
        topic_len: usize,
    ) -> Result<u32, Fault> {
        // Java counts characters before it counts bytes, and the errors differ.
        let text = std::str::from_utf8(&self.properties[start..]).unwrap_or_default();
        if text.len() > MAX_LEN && text.chars().count() > MAX_LEN {
            return Err(fault("properties", format!("at most {MAX_LEN} bytes"), text.len()));
        }
        if options.property_crc {
            crate::format::properties::reserve_crc(&mut self.properties);
        }
        let properties_len = self.properties.len() - start;
        if properties_len > MAX_LEN {
            return Err(fault(PROPERTIES_SIZE, format!("at most {MAX_LEN} bytes"), properties_len));
        }
        let born_host = row.born_host.unwrap_or(options.store_host);
        let fixed = MIN_LEN - 16 + born_host.encoded_len() + options.store_host.encoded_len();
        // A topic longer than 127 bytes needs a V2 record (5.x), whose topic length takes two bytes.
        let topic_len = topic_len + usize::from(topic_len > MAX_TOPIC);
        let size = fixed + row.body.map_or(0, <[u8]>::len) + topic_len + properties_len;
        // Each file keeps room for the blank record at its end.
        let room = options.file_size - MIN_BLANK_LEN as u64;
        if size as u64 > room {
            return Err(fault("message", format!("a record of at most {room} bytes (file_size)"), size));
        }
        Ok(size as u32)
    }
}

/// Bytes of a message in a batch on the wire, without body and properties.
const WIRE_LEN: usize = 4 + 4 + 4 + 4 + 4 + 2;

/// The parameters of an append. A producer's batch has messages of one queue, stored contiguously in one file of the log, or
/// not at all.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub options: &'a AppendOptions,
    pub store_ms: i64,
    pub first_row: usize,
    /// Whether the rows are a producer's batch, which must be stored completely in one file.
    pub is_whole: bool,
}

impl Batch<'_> {
    /// Returns the local time of the append, in milliseconds since 1970.
    pub fn local_ms(&self) -> i64 {
        self.store_ms + self.options.zone_offset_ms
    }

    /// Refuses rows that a producer could not send as a batch.
    pub fn check<R: Rows>(&self, rows: &R, plan: &Plan, queues: &QueueTable, file_size: u64) -> Result<()> {
        let Some(first) = plan.rows.first().filter(|_| self.is_whole) else { return Ok(()) };
        if let Some(row) = plan.rows.iter().position(|row| row.queue != first.queue) {
            let topic = &queues.topic(plan.rows[row].queue).name;
            let got = format!("queue {} of topic {topic} in row {row}", queues.queue(plan.rows[row].queue).queue_id);
            return Err(Error::invalid("batch", "messages of one queue", got));
        }
        // A batch with delays or transactions is refused, as in `asyncPutMessages`.
        if *queues.topic(first.queue).name == *DELAY_TOPIC {
            return Err(Error::invalid("batch", "messages without a delay", "a property DELAY"));
        }
        if let Some(row) = (0..rows.len()).find(|row| rows.row(*row).sys_flag & i64::from(TRANSACTION_MASK) != 0) {
            let got = format!("a transaction type in row {row}");
            return Err(Error::invalid("batch", "messages without a transaction", got));
        }
        self.check_size(rows, plan, file_size)
    }

    fn check_size<R: Rows>(&self, rows: &R, plan: &Plan, file_size: u64) -> Result<()> {
        // The limit counts the batch as a producer sends it, before the store adds its own fields.
        let body = |row| rows.row(row).body.map_or(0, <[u8]>::len);
        let wire_size: usize = (0..rows.len()).map(|row| WIRE_LEN + body(row) + plan.parts(row).properties.len()).sum();
        if wire_size > self.options.max_message_size {
            let expected = format!("at most {} bytes as sent (max_message_size)", self.options.max_message_size);
            return Err(Error::invalid("batch", expected, wire_size));
        }
        let stored = plan.size();
        // Each file keeps room for the blank record at its end.
        let room = file_size - MIN_BLANK_LEN as u64;
        if stored > room {
            return Err(Error::invalid("batch", format!("records of at most {room} bytes (file_size)"), stored));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::append::{Messages, OwnedMessage};

    fn plan(change: impl Fn(&mut OwnedMessage)) -> Result<Plan> {
        plan_with(AppendOptions { max_message_size: 10, file_size: 300, ..AppendOptions::default() }, change)
    }

    fn plan_with(options: AppendOptions, change: impl Fn(&mut OwnedMessage)) -> Result<Plan> {
        let mut message = OwnedMessage { topic: "T".into(), ..OwnedMessage::default() };
        change(&mut message);
        let rows = Messages::new(vec![OwnedMessage { topic: "T".into(), ..OwnedMessage::default() }, message]);
        let mut plan = Plan::default();
        plan.fill(&rows, &options, &mut QueueTable::new("nowhere".into(), 20), 0, 40)?;
        Ok(plan)
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
        assert_eq!(plan.keys(), 3);
        assert_eq!((plan.parts(0).properties, plan.parts(0).keys.len()), (&b""[..], 0));
        assert_eq!((plan.parts(1).properties, plan.parts(1).keys.len()), (&b"KEYS\x01 a  b \x02UNIQ_KEY\x01U"[..], 3));
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
            plan(|m| m.sys_flag = 1 << 31),
            plan(|m| m.reconsume_times = -1),
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

    #[test]
    fn what_is_prepared_or_rolled_back_has_no_place_in_a_queue_and_what_is_rolled_back_no_key() {
        let plan = |sys_flag| {
            let plan = plan(|m| {
                m.sys_flag = sys_flag;
                m.keys = Some("k".into());
                m.properties = vec![("DELAY".into(), "3".into())];
            });
            let plan = plan.expect("sound");
            let row = plan.rows[1];
            (row.is_dispatched, row.queue_offset, plan.keys(), row.tags_code)
        };
        assert_eq!([0x4, 0xC].map(plan), [(false, 0, 1, 0), (false, 0, 0, 0)]);
        assert_eq!(plan(0x8), (true, 0, 1, 10_000));
    }

    #[test]
    fn a_long_topic_is_for_retries_of_5_only() {
        let (long, retry) = ("t".repeat(128), format!("%RETRY%{}", "g".repeat(200)));
        let options = AppendOptions { long_topics: true, ..AppendOptions::default() };
        assert!(plan_with(options, |m| m.topic.clone_from(&long)).is_err());
        assert!(plan_with(AppendOptions::default(), |m| m.topic.clone_from(&retry)).is_err());
        let plan = plan_with(options, |m| m.topic.clone_from(&retry)).expect("sound");
        assert_eq!(plan.rows[1].size as usize, MIN_LEN + 1 + retry.len());
    }

    #[test]
    fn a_message_is_listed_once_in_each_further_queue() {
        let options = AppendOptions { multi_dispatch: true, max_lmq_queues: 2, ..AppendOptions::default() };
        let with =
            |names: &str| plan_with(options, |m| m.properties = vec![("INNER_MULTI_DISPATCH".into(), names.into())]);
        let plan = with("%LMQ%a,T,%LMQ%a").expect("sound");
        let text = &b"INNER_MULTI_DISPATCH\x01%LMQ%a,T,%LMQ%a\x02INNER_MULTI_QUEUE_OFFSET\x010,1,0"[..];
        assert_eq!((plan.parts(1).properties, plan.parts(1).extra_queues.len()), (text, 2));
        assert!(with("%LMQ%a,../b").is_err() && with("").is_err());
        assert!(with("%LMQ%a,%LMQ%b,%LMQ%c").expect_err("too many").to_string().contains("at most 2"));
    }
}
