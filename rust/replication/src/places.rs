//! Maps positions of a copy of topics to positions of its master's log.
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Pairs of positions (in the copy, in the master's log) whose records are not listed yet, and the last position of
/// the master's log whose records are listed.
#[derive(Debug)]
pub struct Places {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<(u64, u64)>,
    reached: u64,
}

impl Places {
    /// Creates the map for a copy that is complete up to `reached` in the master's log.
    pub fn new(reached: u64) -> Self {
        Self { state: Mutex::new(State { waiting: VecDeque::new(), reached }) }
    }

    /// Notes that the copy ended at `copied` when the master's log had been read up to `position`.
    pub fn note(&self, copied: u64, position: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.waiting.back_mut().filter(|(last, _)| *last == copied) {
            // nothing was copied since, so only the master's position advances
            Some((_, last)) => *last = position,
            None => state.waiting.push_back((copied, position)),
        }
    }

    /// Returns the position in the master's log that corresponds to `copied` in the copy. `copied` must not decrease
    /// from call to call.
    pub fn position_at(&self, copied: u64) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((_, position)) = state.waiting.pop_front_if(|(place, _)| *place <= copied) {
            state.reached = position;
        }
        state.reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_as_far_as_the_last_pair_that_was_reached() {
        let places = Places::new(100);
        assert_eq!(places.position_at(7), 100);
        [(10, 200), (10, 250), (20, 300), (35, 400)].into_iter().for_each(|(copied, at)| places.note(copied, at));
        let found = [9, 10, 19, 34, 35, 99].map(|copied| places.position_at(copied));
        assert_eq!(found, [100, 250, 250, 300, 400, 400]);
        // no record of the topics arrived
        places.note(35, 900);
        assert_eq!(places.position_at(35), 900);
    }
}
