//! Plans a batch before anything is written: checks every row, and computes its record's size and its queue.
//!
//! Source: `CommitLog.asyncPutMessage`, `CommitLog.MessageExtEncoder.encode`, `MultiDispatch.wrapMultiDispatch`.
use super::delay::DELAY_TOPIC;
use super::index_writer::key_hash;
use super::options::AppendOptions;
use super::properties;
use super::queue_table::QueueTable;
use super::row::{Row, Rows};
use super::row_check::{
    Fault, PROPERTIES_SIZE, TOO_MANY_QUEUES, check_numbers, check_properties, check_queue_name, delay_of, fault,
    is_dispatched, number_of, topic_of,
};
use crate::Result;
use crate::format::message::{MIN_BLANK_LEN, MIN_LEN, TRANSACTION_MASK, TRANSACTION_ROLLBACK};
use crate::format::names::MAX_TOPIC;
use crate::format::properties::KnownProperties;
use crate::format::properties::MAX_LEN;
use crate::format::tag::tags_code;
use crate::store::multi_dispatch::{self, LMQ};

/// A row that was checked. What is its own of the plan's lists ends where these say; it begins where that of the row before ends.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// Bytes of its record.
    pub size: u32,
    /// Number of its queue in the table.
    pub queue: u32,
    /// Its number in the queue; 0 for one that has no place in it.
    pub queue_offset: i64,
    /// Whether it has a place in its queue.
    pub is_dispatched: bool,
    /// What its consume-queue unit says beside the place of the record.
    pub tags_code: i64,
    properties_end: usize,
    keys_end: usize,
    further_end: usize,
}

/// A batch that was checked: all that is to be written, but the bodies and where.
#[derive(Debug, Default)]
pub struct Plan {
    pub rows: Vec<Planned>,
    /// Property strings, one behind the other.
    properties: Vec<u8>,
    /// Index hashes of keys.
    keys: Vec<i32>,
    /// Numbers of further queues.
    further: Vec<u32>,
}

/// Queues that a row wants to be listed in, too.
struct Further<'a> {
    names: &'a str,
    queue_id: i32,
    is_dispatched: bool,
    /// Where its property string begins.
    start: usize,
}

/// What of the lists is a row's own.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    pub properties: &'a [u8],
    /// Index hashes of its keys.
    pub keys: &'a [i32],
    /// Numbers of further queues that list it.
    pub further: &'a [u32],
}

impl Plan {
    /// Checks `rows`, and counts them where `queues` will need room; `first_row` is the number of the first one in errors.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the first row that cannot be stored.
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
        self.further.clear();
        for index in 0..rows.len() {
            let row = rows.row(index);
            let planned = self.check(rows, &row, options, queues, store_ms);
            let planned =
                planned.map_err(|fault| fault.of_row(first_row + index, rows.len() == 1 && first_row == 0))?;
            self.rows.push(planned);
        }
        Ok(())
    }

    /// Bytes of the rows' records.
    pub fn size(&self) -> u64 {
        self.rows.iter().map(|row| u64::from(row.size)).sum()
    }

    /// Index entries that the rows need.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// What of the lists is the own of the row of that number.
    #[inline]
    pub fn parts(&self, row: usize) -> Parts<'_> {
        let before = row.checked_sub(1).map(|before| &self.rows[before]);
        let start = before.map_or((0, 0, 0), |row| (row.properties_end, row.keys_end, row.further_end));
        let row = &self.rows[row];
        Parts {
            properties: &self.properties[start.0..row.properties_end],
            keys: &self.keys[start.1..row.keys_end],
            further: &self.further[start.2..row.further_end],
        }
    }

    /// Gives the memory of a large batch back.
    pub fn shrink(&mut self) {
        const KEPT: usize = 64 << 10;
        self.rows.shrink_to(KEPT / size_of::<Planned>());
        self.properties.shrink_to(KEPT);
        self.keys.shrink_to(KEPT / size_of::<i32>());
    }

    #[inline]
    fn check<'a, R: Rows>(
        &mut self,
        rows: &'a R,
        row: &Row<'a>,
        options: &AppendOptions,
        queues: &mut QueueTable,
        store_ms: i64,
    ) -> Result<Planned, Fault> {
        let topic = topic_of(row, options.long_topics)?;
        let queue_id = number_of("queue_id", row.queue_id, 0)?;
        check_numbers(row)?;
        let body = row.body.ok_or_else(|| fault("body", "bytes", "null"))?;
        if body.len() > options.max_message_size {
            let expected = format!("at most {} bytes (max_message_size)", options.max_message_size);
            return Err(fault("body", expected, body.len()));
        }
        let start = self.properties.len();
        let (named, count) = properties::encode(rows, row, &mut self.properties);
        check_properties(rows, row, &self.properties[start..], count)?;
        let is_dispatched = is_dispatched(row.sys_flag as i32);
        // as `asyncPutMessage`: a prepared message and a rollback are not delayed
        let delay = if is_dispatched && !row.is_due { delay_of(named, &options.delay_levels)? } else { None };
        let (topic, queue_id) = match delay {
            Some(delay) => {
                properties::add_delay(row, delay, start, &mut self.properties);
                (DELAY_TOPIC, delay.queue_id())
            }
            None => (topic, queue_id),
        };
        let queue = queues.find(topic, queue_id);
        self.plan_keys(row, &named, queues.topic(queue).key_hash);
        if options.multi_dispatch
            && let Some(names) = named.multi_dispatch.and_then(|names| std::str::from_utf8(names).ok())
        {
            let further = Further { names, queue_id, is_dispatched, start };
            self.plan_further(further, options, queues)?;
        }
        let size = self.sized(row, options, start, topic.len())?;
        Ok(Planned {
            size,
            queue,
            // prepared messages and rollbacks have 0, and do not move the queue on
            queue_offset: if is_dispatched { queues.plan(queue) } else { 0 },
            is_dispatched,
            tags_code: match delay {
                // the unit of a delayed message holds its time where others have the hash of their tag
                Some(delay) => delay.deliver_timestamp(store_ms),
                None => tags_code(named.tags.and_then(|tags| std::str::from_utf8(tags).ok())),
            },
            properties_end: self.properties.len(),
            keys_end: self.keys.len(),
            further_end: self.further.len(),
        })
    }

    #[inline]
    fn plan_keys(&mut self, row: &Row<'_>, named: &KnownProperties<'_>, topic_hash: i32) {
        // Java indexes all but these: prepared messages, which no queue lists, are found by key, too
        if row.sys_flag as i32 & TRANSACTION_MASK == TRANSACTION_ROLLBACK {
            return;
        }
        // the order in which `buildIndex` puts them: equal input gives equal files
        for key in named.index_keys() {
            self.keys.push(key_hash(topic_hash, key));
        }
    }

    /// Plans a place in each queue that a property names; one that is named twice lists the message once.
    fn plan_further(
        &mut self,
        asked: Further<'_>,
        options: &AppendOptions,
        queues: &mut QueueTable,
    ) -> Result<(), Fault> {
        let (from, mut offsets) = (self.further.len(), Vec::new());
        for (name, queue_id) in multi_dispatch::queues(asked.names, asked.queue_id) {
            check_queue_name(name)?;
            // before it is in the table: a queue that is refused must not count from then on
            let is_new_lmq = name.starts_with(LMQ) && !queues.has(name, queue_id);
            if is_new_lmq && queues.lmq_count() >= options.max_lmq_queues {
                let expected = format!("at most {} queues of multi-dispatch", options.max_lmq_queues);
                return Err(fault(TOO_MANY_QUEUES, expected, name));
            }
            let number = queues.find(name, queue_id);
            if let Some(at) = self.further[from..].iter().position(|further| *further == number) {
                offsets.push(offsets[at]);
                continue;
            }
            if asked.is_dispatched {
                offsets.push(queues.plan(number));
                self.further.push(number);
            } else {
                // as a broker: it tells where it would be
                offsets.push(queues.queue(number).planned_offset());
            }
        }
        let offsets: Vec<_> = offsets.iter().map(i64::to_string).collect();
        properties::add_multi_queue_offset(&offsets.join(","), asked.start, &mut self.properties);
        Ok(())
    }

    /// The size of the record, once its properties are whole.
    #[inline]
    fn sized(&mut self, row: &Row<'_>, options: &AppendOptions, start: usize, topic_len: usize) -> Result<u32, Fault> {
        // as Java, which counts characters first
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
        // of a topic longer than 127 bytes the length takes two: a V2 record (5.x)
        let topic_len = topic_len + usize::from(topic_len > MAX_TOPIC);
        let size = fixed + row.body.map_or(0, <[u8]>::len) + topic_len + properties_len;
        let room = options.file_size - MIN_BLANK_LEN as u64;
        if size as u64 > room {
            return Err(fault("message", format!("a record of at most {room} bytes (file_size)"), size));
        }
        Ok(size as u32)
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
        assert_eq!((plan.parts(1).properties, plan.parts(1).further.len()), (text, 2));
        assert!(with("%LMQ%a,../b").is_err() && with("").is_err());
        assert!(with("%LMQ%a,%LMQ%b,%LMQ%c").expect_err("too many").to_string().contains("at most 2"));
    }
}
