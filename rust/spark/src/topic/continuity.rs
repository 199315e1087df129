//! Detects queues that were replaced since a stream has read them, for example because their topic was created again.
//! Does no I/O.
//!
//! A topic that was deleted and created again has other messages at the same offsets. So does a broker that lost its
//! last messages and took new ones. Two facts reveal this: a master's queue ends before the stream's offset, or the
//! message before that offset has another store time than the message that was read.
use crate::topic::checkpoint::TopicPosition;
use rmqfast_client::cluster::{FoundMessage, QueueState};
use rmqfast_client::puller::Queue;
use std::collections::BTreeMap;

/// State of each queue, as its broker reports it.
pub type StreamStates = BTreeMap<Queue, QueueState>;

/// A queue that does not continue at the stream's offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    pub queue: Queue,
    pub offset: i64,
    pub what: String,
    /// The offset at which to continue if lost messages are no error.
    pub next: i64,
    /// False if a slave reported the queue's end, since the slave may just be behind.
    pub is_certain: bool,
}

const REASON: &str = "its broker lost its last messages, or the topic was made anew";

/// Returns the queues that end before the stream's offset.
pub fn find_ended(position: &TopicPosition, states: &StreamStates) -> Vec<Break> {
    let ended = position.offsets.iter().filter_map(|(queue, offset)| {
        let QueueState { bounds: (first, last), is_of_master, .. } = *states.get(queue)?;
        let what = format!("the checkpoint is at offset {offset}, and the queue ends at {last}: {REASON}");
        let gap = Break { queue: queue.clone(), offset: *offset, what, next: first, is_certain: is_of_master };
        (last < *offset).then_some(gap)
    });
    ended.collect()
}

/// Returns, of queues that the topic no longer has, those with unread messages, and those that end before the stream's
/// offset.
pub fn withdrawn(position: &TopicPosition, states: &StreamStates) -> Vec<Break> {
    let unread = states.iter().filter_map(|(queue, state)| {
        let (offset, last) = (*position.offsets.get(queue)?, state.bounds.1);
        let what = format!(
            "the checkpoint is at offset {offset}, and the queue, which has messages up to {last}, cannot be \
                            read any more: the topic has fewer queues"
        );
        let gap = Break { queue: queue.clone(), offset, what, next: offset, is_certain: state.is_of_master };
        (last > offset).then_some(gap)
    });
    unread.chain(find_ended(position, states)).collect()
}

/// Returns each queue for which the bounds do not show whether the last message that was read is still there, with the
/// offset of this message.
pub fn doubtful(position: &TopicPosition, states: &StreamStates) -> Vec<(Queue, i64)> {
    let doubtful = position.stored.iter().filter_map(|(queue, stored)| {
        let (offset, state) = (*position.offsets.get(queue)?, states.get(queue)?);
        let (first, last) = state.bounds;
        // no new messages, and the last message has the store time of the one that was read
        let is_same = last == offset && state.last_stored == Some(*stored);
        let is_there = (first + 1..=last).contains(&offset);
        (is_there && !is_same).then(|| (queue.clone(), offset - 1))
    });
    doubtful.collect()
}

/// Returns the queues in which the last message that was read was replaced by another message. `found` contains the
/// messages at the offsets that [`doubtful`] returned.
pub fn find_replaced(
    position: &TopicPosition,
    states: &StreamStates,
    found: &BTreeMap<Queue, Option<FoundMessage>>,
) -> Vec<Break> {
    let replaced = found.iter().filter_map(|(queue, message)| {
        let stored = *position.stored.get(queue)?;
        let message = message.filter(|message| message.is_own && message.store_timestamp != stored)?;
        let (offset, next) = (*position.offsets.get(queue)?, states.get(queue)?.bounds.0);
        let now = message.store_timestamp;
        let what = format!(
            "the checkpoint is at offset {offset}, and the message before it is another one than was read, stored at \
                            {now} and not at {stored}: {REASON}"
        );
        Some(Break { queue: queue.clone(), offset, what, next, is_certain: true })
    });
    replaced.collect()
}

/// Returns the queues that no longer have the first message of a batch. `first` is the position after these messages;
/// `found` contains the messages at the offsets that [`doubtful`] returned.
pub fn begun_anew(
    first: &TopicPosition,
    states: &StreamStates,
    found: &BTreeMap<Queue, Option<FoundMessage>>,
) -> Vec<Break> {
    let breaks = find_ended(first, states).into_iter().chain(find_replaced(first, states, found));
    let what = |offset: i64| {
        format!("the first message that the batch read, at offset {offset}, is not there any more: {REASON}")
    };
    let certain = breaks.filter(|found| found.is_certain);
    certain.map(|found| Break { what: what(found.offset - 1), ..found }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(queue_id: i32) -> Queue {
        Queue { topic: "orders".into(), broker_name: "b".into(), queue_id }
    }

    fn position(queues: &[(i32, i64, Option<i64>)]) -> TopicPosition {
        let stored = queues.iter().filter_map(|(id, _, stored)| Some((queue(*id), (*stored)?)));
        TopicPosition {
            offsets: queues.iter().map(|(id, at, _)| (queue(*id), *at)).collect(),
            stored: stored.collect(),
        }
    }

    fn state(first: i64, last: i64, last_stored: i64) -> QueueState {
        QueueState { bounds: (first, last), last_stored: Some(last_stored), is_of_master: true }
    }

    fn states(queues: &[(i32, QueueState)]) -> StreamStates {
        queues.iter().map(|(id, state)| (queue(*id), *state)).collect()
    }

    fn message(store_timestamp: i64) -> FoundMessage {
        FoundMessage { store_timestamp, physical_offset: 0, len: 100, body_crc: 0, is_own: true }
    }

    #[test]
    fn a_queue_that_ends_before_the_stream_is_certain_of_a_master_only() {
        let at = position(&[(0, 20, None), (1, 20, None), (2, 20, Some(5)), (3, 20, None)]);
        let slave = QueueState { is_of_master: false, ..state(0, 19, 5) };
        let all = states(&[(0, state(0, 3, 9)), (1, state(0, 20, 9)), (2, slave)]);
        let found: Vec<_> =
            find_ended(&at, &all).into_iter().map(|b| (b.queue, b.offset, b.next, b.is_certain)).collect();
        assert_eq!(found, [(queue(0), 20, 0, true), (queue(2), 20, 0, false)]);
        let text = "the checkpoint is at offset 20, and the queue ends at 3: its broker lost its last messages, or the topic was \
                    made anew";
        assert_eq!(find_ended(&at, &all)[0].what, text);
    }

    #[test]
    fn a_queue_that_is_read_no_more_is_a_loss_if_it_has_messages_that_were_not_read() {
        let at = position(&[(0, 20, None), (1, 20, None), (2, 20, None)]);
        let all = states(&[(0, state(0, 20, 9)), (1, state(0, 25, 9)), (2, state(0, 0, 0))]);
        let found: Vec<_> = withdrawn(&at, &all).into_iter().map(|b| (b.queue, b.next)).collect();
        assert_eq!(found, [(queue(1), 20), (queue(2), 0)]);
    }

    #[test]
    fn only_what_the_bounds_do_not_tell_is_looked_at() {
        let at = position(&[
            (0, 20, Some(5)),
            (1, 20, Some(5)),
            (2, 20, Some(5)),
            (3, 20, None),
            (4, 20, Some(5)),
            (5, 0, None),
        ]);
        let unknown = QueueState { last_stored: None, ..state(0, 20, 0) };
        let all = states(&[
            // no new messages
            (0, state(0, 20, 5)),
            // created again, with as many messages
            (1, state(0, 20, 9)),
            // new messages
            (2, state(0, 25, 9)),
            // the last message's store time is unknown
            (3, state(0, 25, 9)),
            // the last message has expired
            (4, state(20, 25, 9)),
            (5, state(0, 5, 9)),
        ]);
        assert_eq!(doubtful(&at, &all), [(queue(1), 19), (queue(2), 19)]);
        assert_eq!(doubtful(&at, &states(&[(0, unknown)])), [(queue(0), 19)]);
        assert_eq!(doubtful(&at, &states(&[(0, state(0, 3, 9))])), []);
    }

    #[test]
    fn a_batch_whose_first_message_is_not_there_any_more_is_a_break() {
        // positions behind the first messages that a batch read
        let first = position(&[(0, 1, Some(5)), (1, 1, Some(5)), (2, 1, Some(5)), (3, 1, Some(5)), (4, 1, None)]);
        let slave = QueueState { is_of_master: false, ..state(0, 0, 0) };
        let all =
            states(&[(0, state(0, 9, 9)), (1, state(0, 9, 9)), (2, state(0, 0, 0)), (3, slave), (4, state(0, 9, 9))]);
        let found = BTreeMap::from([(queue(0), Some(message(5))), (queue(1), Some(message(8)))]);
        let found: Vec<_> = begun_anew(&first, &all, &found).into_iter().map(|b| (b.queue, b.next, b.what)).collect();
        let text = "the first message that the batch read, at offset 0, is not there any more: its broker lost its last messages, \
                    or the topic was made anew";
        assert_eq!(found, [(queue(2), 0, text.to_owned()), (queue(1), 0, text.to_owned())]);
    }

    #[test]
    fn another_message_than_the_one_that_was_read_is_a_break() {
        let at = position(&[(0, 20, Some(5)), (1, 20, Some(5)), (2, 20, Some(5)), (3, 20, Some(5))]);
        let all = states(&[(0, state(0, 25, 9)), (1, state(0, 25, 9)), (2, state(0, 25, 9)), (3, state(3, 25, 9))]);
        // a light or compacted queue may have another message there
        let other = FoundMessage { is_own: false, ..message(9) };
        let found = BTreeMap::from([
            (queue(0), Some(message(5))),
            (queue(1), None),
            (queue(2), Some(other)),
            (queue(3), Some(message(8))),
        ]);
        let breaks = find_replaced(&at, &all, &found);
        let text = "the checkpoint is at offset 20, and the message before it is another one than was read, stored at 8 and not at \
                    5: its broker lost its last messages, or the topic was made anew";
        let expected = Break { queue: queue(3), offset: 20, what: text.into(), next: 3, is_certain: true };
        assert_eq!(breaks, [expected]);
    }
}
