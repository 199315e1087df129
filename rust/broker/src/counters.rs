//! What was counted since the start; the control plane makes rates of it.
//!
//! Source: `BrokerStatsManager`.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// How often, how many, how much.
#[derive(Debug, Default)]
pub struct Counter {
    calls: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Counter {
    /// Counts one call for so many messages of so many bytes.
    #[inline]
    pub fn add(&self, messages: usize, bytes: u64) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

type Keys = HashMap<Box<str>, Arc<Counter>>;

/// Counters by name and key; of names there are few.
#[derive(Debug, Default)]
pub struct Counters {
    by_name: RwLock<HashMap<&'static str, Keys>>,
}

impl Counters {
    /// The counter of a key.
    pub fn of(&self, name: &'static str, key: &str) -> Arc<Counter> {
        let read = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = read.get(name).and_then(|keys| keys.get(key)) {
            return counter.clone();
        }
        // only a key's first use comes here: all others share the lock
        drop(read);
        let mut write = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        write.entry(name).or_default().entry(key.into()).or_default().clone()
    }

    /// Forgets the keys of a name that are not to be kept.
    pub fn retain(&self, keep: impl Fn(&'static str, &str) -> bool) {
        let mut write = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        write.iter_mut().for_each(|(name, keys)| keys.retain(|key, _| keep(name, key)));
    }

    /// Name, key, calls, messages and bytes of each.
    pub fn all(&self) -> Vec<(&'static str, String, u64, u64, u64)> {
        let read = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for (name, keys) in read.iter() {
            for (key, counter) in keys {
                let [calls, messages, bytes] =
                    [&counter.calls, &counter.messages, &counter.bytes].map(|number| number.load(Ordering::Relaxed));
                all.push((*name, key.to_string(), calls, messages, bytes));
            }
        }
        all
    }
}
