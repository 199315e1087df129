//! Messages that queues list and pulls cannot give, as the log is damaged: counted, and each place told once.
use rmqfast_store::store::serve::PassedOver;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Places that are remembered, so that each is told once. Messages at further ones are only counted.
const MAX_PLACES: usize = 10_000;

/// A message that was passed over, and its queue.
#[derive(Clone, Debug)]
pub struct Passed {
    /// Topic of the queue.
    pub topic: String,
    /// Number of the queue.
    pub queue_id: i32,
    /// What is known of it.
    pub message: PassedOver,
}

/// All that were passed over since the start.
#[derive(Debug, Default)]
pub struct PassedOvers {
    count: AtomicU64,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    known: HashSet<(String, i32, i64)>,
    untold: Vec<Passed>,
}

impl PassedOvers {
    /// Counts messages of one pull.
    #[inline]
    pub fn add(&self, queue: (&str, i32), messages: &[PassedOver]) {
        if !messages.is_empty() {
            self.note(queue, messages);
        }
    }

    #[cold]
    fn note(&self, (topic, queue_id): (&str, i32), messages: &[PassedOver]) {
        let count = messages.iter().map(|message| message.messages).sum();
        self.count.fetch_add(count, Ordering::Relaxed);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        for message in messages {
            let place = (topic.to_owned(), queue_id, message.queue_offset);
            if places.known.len() < MAX_PLACES && places.known.insert(place) {
                places.untold.push(Passed { topic: topic.to_owned(), queue_id, message: *message });
            }
        }
    }

    /// How many messages pulls passed over: one that two groups ask for counts twice.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The places that nobody was told of yet.
    pub fn take(&self) -> Vec<Passed> {
        std::mem::take(&mut self.places.lock().unwrap_or_else(PoisonError::into_inner).untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_store::format::consume_queue::Unit;
    use rmqfast_store::store::serve::Fault;

    fn at(queue_offset: i64) -> PassedOver {
        PassedOver { queue_offset, messages: 1, unit: Unit::default(), fault: Fault::NoUnit }
    }

    #[test]
    fn each_message_is_counted_and_each_place_told_once() {
        let passed = PassedOvers::default();
        passed.add(("T", 0), &[]);
        passed.add(("T", 0), &[at(3), at(4)]);
        passed.add(("T", 0), &[at(4), at(5)]);
        passed.add(("T", 1), &[at(4)]);
        let told: Vec<_> = passed.take().iter().map(|one| (one.queue_id, one.message.queue_offset)).collect();
        assert_eq!((passed.count(), told, passed.take().len()), (5, vec![(0, 3), (0, 4), (0, 5), (1, 4)], 0));
    }

    #[test]
    fn only_so_many_places_are_remembered() {
        let passed = PassedOvers::default();
        let many: Vec<_> = (0..MAX_PLACES as i64 + 10).map(at).collect();
        passed.add(("T", 0), &many);
        assert_eq!((passed.count(), passed.take().len()), (many.len() as u64, MAX_PLACES));
    }
}
