//! Counts the messages that queues list but pulls skip because the log is damaged. Reports each position once.
use rmqfast_store::store::serve::SkippedRange;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of positions to remember. Further skipped messages are only counted.
const MAX_PLACES: usize = 10_000;

/// A skipped message and its queue.
#[derive(Clone, Debug)]
pub struct SkippedMessage {
    pub topic: String,
    pub queue_id: i32,
    /// The range of skipped messages, and the fault of their positions.
    pub skipped: SkippedRange,
}

/// Messages skipped since the start.
#[derive(Debug, Default)]
pub struct SkippedMessages {
    count: AtomicU64,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    seen: HashSet<(String, i32, i64)>,
    unreported: Vec<SkippedMessage>,
}

impl SkippedMessages {
    #[inline]
    pub fn add(&self, queue: (&str, i32), messages: &[SkippedRange]) {
        if !messages.is_empty() {
            self.note(queue, messages);
        }
    }

    #[cold]
    fn note(&self, (topic, queue_id): (&str, i32), messages: &[SkippedRange]) {
        let count = messages.iter().map(|message| message.messages).sum();
        self.count.fetch_add(count, Ordering::Relaxed);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        for message in messages {
            let place = (topic.to_owned(), queue_id, message.queue_offset);
            if places.seen.len() < MAX_PLACES && places.seen.insert(place) {
                places.unreported.push(SkippedMessage { topic: topic.to_owned(), queue_id, skipped: *message });
            }
        }
    }

    /// Returns the number of skipped messages. A message that two groups pulled counts twice.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the skipped messages that earlier calls have not returned.
    pub fn take(&self) -> Vec<SkippedMessage> {
        std::mem::take(&mut self.places.lock().unwrap_or_else(PoisonError::into_inner).unreported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_store::format::consume_queue::Unit;
    use rmqfast_store::store::serve::Fault;

    fn at(queue_offset: i64) -> SkippedRange {
        SkippedRange { queue_offset, messages: 1, unit: Unit::default(), fault: Fault::NoUnit }
    }

    #[test]
    fn each_message_is_counted_and_each_place_reported_once() {
        let skipped = SkippedMessages::default();
        skipped.add(("T", 0), &[]);
        skipped.add(("T", 0), &[at(3), at(4)]);
        skipped.add(("T", 0), &[at(4), at(5)]);
        skipped.add(("T", 1), &[at(4)]);
        let reported: Vec<_> = skipped.take().iter().map(|one| (one.queue_id, one.skipped.queue_offset)).collect();
        assert_eq!((skipped.count(), reported, skipped.take().len()), (5, vec![(0, 3), (0, 4), (0, 5), (1, 4)], 0));
    }

    #[test]
    fn only_so_many_places_are_remembered() {
        let skipped = SkippedMessages::default();
        let many: Vec<_> = (0..MAX_PLACES as i64 + 10).map(at).collect();
        skipped.add(("T", 0), &many);
        assert_eq!((skipped.count(), skipped.take().len()), (many.len() as u64, MAX_PLACES));
    }
}
