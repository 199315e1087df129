//! Notifies a listener of each message once it can be read.
//!
//! Source: `MessageArrivingListener.arriving`, `DefaultMessageStore.ReputMessageService.doReput`, `notifyMessageArrive4MultiQueue`.
use super::live_queue::LiveQueue;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, PoisonError, RwLock};

/// A listener for new messages. It is called on the appending thread, while no lock of the store is held.
pub trait ArrivalListener: Send + Sync {
    /// Returns whether any reader waits for messages. Called once per append, after its messages became readable. A
    /// reader first registers and then reads the queue again, so it misses no message.
    fn is_waiting(&self) -> bool {
        true
    }

    /// Called once for each queue that lists the message.
    fn on_arrival(&self, arrival: &Arrival<'_>);
}

#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    pub topic: &'a str,
    pub queue_id: i32,
    /// End of the queue when the listener is called. It is behind the message, and may be behind later messages.
    pub max_offset: i64,
    pub tags_code: i64,
    pub store_timestamp: i64,
    /// Property string of the message, in the format of [`properties`](crate::format::properties).
    pub properties: &'a [u8],
}

#[derive(Default)]
pub struct Arrivals {
    is_listening: AtomicBool,
    listener: RwLock<Option<Arc<dyn ArrivalListener>>>,
}

impl fmt::Debug for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrivals").field("is_listening", &self.is_listening).finish_non_exhaustive()
    }
}

impl Arrivals {
    pub fn listen(&self, listener: Option<Arc<dyn ArrivalListener>>) {
        // This flag saves appends without a listener from taking the lock.
        self.is_listening.store(listener.is_some(), Ordering::SeqCst);
        *self.listener.write().unwrap_or_else(PoisonError::into_inner) = listener;
    }

    /// Returns the listener if a reader waits for messages that were published before this call.
    #[inline]
    pub fn waiting(&self) -> Option<Arc<dyn ArrivalListener>> {
        // Relaxed is enough: a listener that is set during an append may miss its messages.
        if self.is_listening.load(Ordering::Relaxed) { self.ask() } else { None }
    }

    fn ask(&self) -> Option<Arc<dyn ArrivalListener>> {
        let listener = self.listener.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        // Published messages must be visible before the listener is asked.
        fence(Ordering::SeqCst);
        listener.is_waiting().then_some(listener)
    }
}

/// The messages of one append, collected until the append lock is released.
#[derive(Debug, Default)]
pub struct ArrivalBatch {
    store_timestamp: i64,
    properties: Vec<u8>,
    /// For each message: queue, max offset, tag hash, and range of the property string in `properties`.
    entries: Vec<(Arc<LiveQueue>, i64, i64, Range<usize>)>,
}

impl ArrivalBatch {
    pub fn new(store_timestamp: i64) -> Self {
        Self { store_timestamp, ..Self::default() }
    }

    /// Adds a message, with the queues that list it and the max offset of each queue.
    pub fn push<'a>(
        &mut self,
        queues: impl Iterator<Item = (&'a Arc<LiveQueue>, i64)>,
        tags_code: i64,
        properties: &[u8],
    ) {
        let start = self.properties.len();
        self.properties.extend_from_slice(properties);
        let range = start..self.properties.len();
        // The queues of multi-dispatch share one copy of the properties.
        self.entries.extend(queues.map(|(queue, max)| (queue.clone(), max, tags_code, range.clone())));
    }

    pub fn notify(&self, listener: &dyn ArrivalListener) {
        for (queue, max_offset, tags_code, properties) in &self.entries {
            listener.on_arrival(&Arrival {
                topic: queue.topic(),
                queue_id: queue.queue_id(),
                max_offset: *max_offset,
                tags_code: *tags_code,
                store_timestamp: self.store_timestamp,
                properties: &self.properties[properties.clone()],
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Listener {
        is_waiting: bool,
        arrived: Mutex<Vec<String>>,
    }

    impl ArrivalListener for Listener {
        fn is_waiting(&self) -> bool {
            self.is_waiting
        }

        fn on_arrival(&self, arrival: &Arrival<'_>) {
            self.arrived.lock().expect("no panic").push(format!("{arrival:?}"));
        }
    }

    #[test]
    fn only_who_waits_is_asked_for() {
        let arrivals = Arrivals::default();
        assert!(arrivals.waiting().is_none());
        for is_waiting in [false, true] {
            arrivals.listen(Some(Arc::new(Listener { is_waiting, arrived: Mutex::default() })));
            assert_eq!(arrivals.waiting().is_some(), is_waiting);
        }
        arrivals.listen(None);
        assert!(arrivals.waiting().is_none());
    }

    #[test]
    fn each_queue_of_a_message_is_told_with_its_properties() {
        let queue = |name| Arc::new(LiveQueue::new(name, 3, "nowhere".into(), 20, 0, Arc::default()));
        let (own, further) = (queue("T"), queue("%LMQ%a"));
        let mut arrived = ArrivalBatch::new(99);
        arrived.push([(&own, 5), (&further, 1)].into_iter(), 7, b"ab");
        arrived.push([(&own, 6)].into_iter(), 8, b"c");
        let listener = Listener { is_waiting: true, arrived: Mutex::default() };
        arrived.notify(&listener);
        let arrival = |topic, max_offset, tags_code, properties: &'static [u8]| {
            format!("{:?}", Arrival { topic, queue_id: 3, max_offset, tags_code, store_timestamp: 99, properties })
        };
        let expected = [arrival("T", 5, 7, b"ab"), arrival("%LMQ%a", 1, 7, b"ab"), arrival("T", 6, 8, b"c")];
        assert_eq!(*listener.arrived.lock().expect("no panic"), expected);
    }
}
