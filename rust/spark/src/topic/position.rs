//! The position of a task without an end, together with the first message of each queue. At the end of a batch the
//! driver checks that these messages still exist. For a queue that was read from its first message, only this check
//! reveals that the topic was created again.
use crate::error::{Error, Result};
use crate::topic::checkpoint::TopicPosition;
use crate::topic::topics::Topics;
use rmqfast_client::puller::{PulledAnswer, Queue};
use rmqfast_store::format::message::INNER_BATCH;
use std::collections::btree_map::Entry;

/// A task's report on its queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskPosition {
    pub next: TopicPosition,
    /// The position after the first message that was read of each queue.
    pub first: TopicPosition,
}

impl TaskPosition {
    /// Parses a task's report.
    ///
    /// # Errors
    /// See [`TopicPosition::of_text`].
    pub fn of_text(topics: &Topics, text: &str) -> Result<Self> {
        let Some((next, first)) = text.split_once('\n') else {
            return Err(Error::argument("position of a task: expected two lines, got one"));
        };
        Ok(Self { next: TopicPosition::of_task(topics, next)?, first: TopicPosition::of_task(topics, first)? })
    }

    /// Formats the report as two lines: `next` and `first`.
    pub fn to_text(&self) -> String {
        format!("{}\n{}", self.next.to_text(), self.first.to_text())
    }

    /// Records that the first `count` messages of an answer were passed to Spark.
    pub fn note(&mut self, answer: &PulledAnswer, count: usize) {
        let Some(last) = count.checked_sub(1) else { return };
        let queue = &*answer.queue;
        // only the first message of each queue is kept
        if let Entry::Vacant(vacant) = self.first.offsets.entry(queue.clone()) {
            vacant.insert(answer.offset(0) + 1);
            self.first.stored.extend(store_time(answer, 0).map(|time| (queue.clone(), time)));
        }
        self.next.place(queue, answer.offset(last) + 1, store_time(answer, last));
    }

    /// Returns the report with `next` replaced by `offsets`. Queues that have not moved keep their store times.
    pub fn at(&self, offsets: impl IntoIterator<Item = (Queue, i64)>) -> Self {
        let mut next = TopicPosition::default();
        for (queue, offset) in offsets {
            // the time belongs to the message before `next`, so it is dropped if the queue has moved
            let is_behind_message = self.next.offsets.get(&queue) == Some(&offset);
            let time = self.next.stored.get(&queue).copied().filter(|_| is_behind_message);
            next.place(&queue, offset, time);
        }
        Self { next, first: self.first.clone() }
    }
}

/// Returns the store time of a message, or `None` if its record does not carry the queue and offset of the answer. The
/// driver later compares this time with that of the message that the broker has at the same offset.
fn store_time(answer: &PulledAnswer, index: usize) -> Option<i64> {
    let row = answer.rows.get(index)?;
    let message = row.message(&answer.body)?;
    let is_of_queue = message.topic() == answer.queue.topic.as_bytes() && message.queue_id() == answer.queue.queue_id;
    let is_own =
        is_of_queue && message.queue_offset() == answer.offset(index) && row.layout.sys_flag & INNER_BATCH == 0;
    is_own.then(|| message.store_timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_client::puller::Body;
    use rmqfast_store::format::host::Host;
    use rmqfast_store::format::message::{Message, NewMessage};
    use rmqfast_store::scan::row::Row;
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    fn queue(queue_id: i32) -> Queue {
        Queue { topic: "orders".into(), broker_name: "b".into(), queue_id }
    }

    /// Builds an answer for a queue with messages at these offsets, each stored at 1000 plus its offset. Their records
    /// name queue 0.
    fn answer(queue_id: i32, offsets: &[i64]) -> PulledAnswer {
        let host = Host { ip: Ipv4Addr::LOCALHOST.into(), port: 1 };
        let (mut body, mut rows) = (Vec::new(), Vec::new());
        for offset in offsets {
            let at = body.len();
            let message = NewMessage {
                queue_id: 0,
                flag: 0,
                queue_offset: *offset,
                physical_offset: 0,
                sys_flag: 0,
                born_timestamp: 0,
                born_host: host,
                store_timestamp: 1000 + offset,
                store_host: host,
                reconsume_times: 0,
                prepared_transaction_offset: 0,
                body: b"body",
                topic: "orders",
                properties: b"",
            };
            message.encode(&mut body).expect("a record");
            let layout = *Message::decode(&body[at..]).expect("a record").layout();
            rows.push(Row::new(at as u32, layout));
        }
        let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
        PulledAnswer::read(Arc::new(queue(queue_id)), first..last + 1, Arc::new(Body::copy(&body, None)), rows)
    }

    fn at(position: &TaskPosition, offset: i64) -> TaskPosition {
        position.at([(queue(0), offset)])
    }

    #[test]
    fn a_position_has_the_times_of_the_first_and_the_last_message() {
        let mut position = TaskPosition::default();
        position.note(&answer(0, &[5, 6, 9]), 0);
        assert_eq!(position, TaskPosition::default());
        position.note(&answer(0, &[5, 6, 9]), 2);
        position.note(&answer(0, &[9, 11]), 1);
        let text = at(&position, 10).to_text();
        let expected = [
            r#"{"orders": {"b": {"0": 10}, "b stored 0:1009": {}}}"#,
            r#"{"orders": {"b": {"0": 6}, "b stored 0:1005": {}}}"#,
        ];
        assert_eq!(text, expected.join("\n"));
        let topics = Topics::of_names(["orders".to_owned()]).expect("a name");
        assert_eq!(TaskPosition::of_text(&topics, &text).expect("a position"), at(&position, 10));
        // a filter dropped the messages between, so no store time is known; a queue that was given up has no next
        // offset
        assert!(at(&position, 12).next.stored.is_empty());
        assert_eq!(position.at([]).next, TopicPosition::default());
    }

    #[test]
    fn a_message_that_another_queue_lists_has_no_time() {
        let mut position = TaskPosition::default();
        position.note(&answer(1, &[5]), 1);
        assert_eq!((position.first.offsets, position.first.stored.len()), ([(queue(1), 6)].into(), 0));
        assert_eq!((position.next.offsets, position.next.stored.len()), ([(queue(1), 6)].into(), 0));
    }

    #[test]
    fn a_position_of_nothing_is_read_and_half_of_one_is_refused() {
        let topics = Topics::of_names(["orders".to_owned()]).expect("a name");
        let none = TaskPosition::default();
        assert_eq!(TaskPosition::of_text(&topics, &none.to_text()).expect("a position"), none);
        let error = TaskPosition::of_text(&topics, "{}").expect_err("one line").to_string();
        assert_eq!(error, "position of a task: expected two lines, got one");
    }
}
