//! Messages that a pull could not give, as what a unit leads to is no sound record: zeroes, or something else.
//!
//! A pull goes on behind them, or the queue would stand still for ever; so somebody has to be told.
use std::collections::BTreeSet;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Places that are remembered; of further ones only the number is.
const MOST: usize = 100_000;
/// Places that wait to be told.
const UNTOLD: usize = 1_000;

/// Where a message should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Harmed {
    /// Its topic.
    pub topic: Box<str>,
    /// Its queue.
    pub queue_id: i32,
    /// Its offset in the queue.
    pub queue_offset: i64,
    /// Where the unit says that its record is; with a size of 0 the unit itself is zeroes.
    pub physical_offset: i64,
    /// Bytes of the record, as the unit says.
    pub size: i32,
}

/// The messages that pulls could not give, each counted once.
#[derive(Debug, Default)]
pub struct Harm {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    known: BTreeSet<(Box<str>, i32, i64)>,
    untold: Vec<Harmed>,
}

impl Harm {
    /// Notes one; the same once more is none.
    #[cold]
    pub fn note(&self, harmed: Harmed) {
        let mut state = self.lock();
        let key = (harmed.topic.clone(), harmed.queue_id, harmed.queue_offset);
        if state.known.contains(&key) {
            return;
        }
        state.count += 1;
        if state.known.len() < MOST {
            state.known.insert(key);
        }
        if state.untold.len() < UNTOLD {
            state.untold.push(harmed);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// Those that nobody was told of.
    pub fn take(&self) -> Vec<Harmed> {
        mem::take(&mut self.lock().untold)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
