//! Decides whether the time of day can be trusted. Files expire by age, so a clock that jumps would expire all of them.
//!
//! The time of day at the first run is trusted. The steady clock measures how far the time of day differs from it later. While
//! the difference is more than a day, nothing is removed by age. This state ends when the time is right again, when the runs of
//! a day have agreed on the new time, or with a run that a person starts.
use rmqfast_os::clock::steady_ms;
use std::time::{SystemTime, UNIX_EPOCH};

const HOUR_MS: i64 = 3_600_000;
const TRUSTED_MS: i64 = 24 * HOUR_MS;
/// Maximum difference between the times of runs that agree on a new time.
const AGREED_MS: i64 = HOUR_MS;
/// Time for which all runs must agree on a new time.
const AGREED_FOR_MS: i64 = 24 * HOUR_MS;

/// The readings of two clocks at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Milliseconds since 1970, by a clock that users may set.
    pub wall_ms: i64,
    /// Milliseconds of a clock that cannot be set. It also counts while the machine sleeps.
    pub steady_ms: i64,
}

impl Clock {
    pub fn now() -> Self {
        Self { wall_ms: wall_ms(), steady_ms: steady_ms() }
    }
}

/// Returns the time of day in milliseconds since 1970; 0 for a time before 1970. Called by each append.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// Returns the time of day in milliseconds, which is negative before 1970, so that a jump to such a time is noticed.
fn wall_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_millis() as i64,
        Err(before) => -(before.duration().as_millis() as i64),
    }
}

/// The state of the two clocks, kept from run to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockWatch {
    /// Difference of the two clocks that counts as right.
    trusted: Option<i64>,
    /// A new difference, and the steady time since which all runs have found it.
    candidate: Option<(i64, i64)>,
}

impl ClockWatch {
    /// Returns the milliseconds by which the time of day has jumped, or 0 if the time is trusted. A time `confirmed` by a
    /// person is always trusted.
    pub fn jump(&mut self, clock: Clock, confirmed: bool) -> i64 {
        let ahead = clock.wall_ms.saturating_sub(clock.steady_ms);
        // The first run and a run by a person confirm the present time.
        let Some(trusted) = self.trusted.filter(|_| !confirmed) else { return self.trust(ahead) };
        let jump = ahead.saturating_sub(trusted);
        // The time is right again, so runs need not agree on another time.
        if jump.unsigned_abs() <= TRUSTED_MS.unsigned_abs() {
            self.candidate = None;
            return 0;
        }
        match self.candidate.filter(|(other, _)| other.abs_diff(ahead) <= AGREED_MS.unsigned_abs()) {
            Some((_, since)) if clock.steady_ms - since >= AGREED_FOR_MS => return self.trust(ahead),
            Some(_) => {}
            // This is another new time. Later runs have to agree on it.
            None => self.candidate = Some((ahead, clock.steady_ms)),
        }
        jump
    }

    fn trust(&mut self, ahead: i64) -> i64 {
        *self = Self { trusted: Some(ahead), candidate: None };
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_700_000_000_000;
    const DAY: i64 = 24 * HOUR_MS;

    /// Returns the clocks `hours` after the first run, with a time of day that is wrong by `off` milliseconds.
    fn at(hours: i64, off: i64) -> Clock {
        Clock { wall_ms: START + hours * HOUR_MS + off, steady_ms: 5_000 + hours * HOUR_MS }
    }

    fn jumps(runs: &[(i64, i64)]) -> Vec<i64> {
        let mut watch = ClockWatch::default();
        runs.iter().map(|(hours, off)| watch.jump(at(*hours, *off), false)).collect()
    }

    #[test]
    fn a_clock_that_is_off_by_a_day_or_less_is_believed() {
        assert_eq!(jumps(&[(0, 0), (1, DAY), (2, -DAY), (3, HOUR_MS), (1000, 0)]), [0; 5]);
    }

    #[test]
    fn a_jump_counts_until_the_time_is_right_again() {
        let far = 3650 * DAY;
        assert_eq!(jumps(&[(0, 0), (1, far), (2, far), (3, 0), (4, 0)]), [0, far, far, 0, 0]);
        assert_eq!(jumps(&[(0, 0), (1, -far), (2, 0)]), [0, -far, 0]);
        assert_eq!(jumps(&[(0, 0), (1, DAY + 1)]), [0, DAY + 1]);
    }

    #[test]
    fn a_day_of_runs_that_agree_makes_a_jump_real() {
        let far = 10 * DAY;
        assert_eq!(jumps(&[(0, 0), (1, far), (24, far), (25, far), (26, far), (27, 0)]), [0, far, far, 0, 0, -far]);
    }

    #[test]
    fn runs_that_do_not_agree_begin_the_day_anew() {
        let (far, farther) = (10 * DAY, 20 * DAY);
        let runs = [(0, 0), (1, far), (20, farther), (26, farther), (43, farther), (44, farther)];
        assert_eq!(jumps(&runs), [0, far, farther, farther, farther, 0]);
        let back = [(0, 0), (1, far), (2, 0), (3, far), (26, far), (27, far)];
        assert_eq!(jumps(&back), [0, far, 0, far, far, 0]);
    }

    #[test]
    fn steps_that_are_small_do_not_add_up_unseen() {
        assert_eq!(jumps(&[(0, 0), (1, 20 * HOUR_MS), (2, 40 * HOUR_MS)]), [0, 0, 40 * HOUR_MS]);
    }

    #[test]
    fn a_person_confirms_a_jump() {
        let mut watch = ClockWatch::default();
        watch.jump(at(0, 0), false);
        assert_eq!(watch.jump(at(1, 10 * DAY), false), 10 * DAY);
        assert_eq!(watch.jump(at(2, 10 * DAY), true), 0);
        assert_eq!(watch.jump(at(3, 10 * DAY), false), 0);
    }

    #[test]
    fn times_at_the_end_of_the_numbers_are_only_off() {
        let mut watch = ClockWatch::default();
        watch.jump(at(0, 0), false);
        for wall_ms in [i64::MIN, i64::MAX] {
            assert_ne!(watch.jump(Clock { wall_ms, steady_ms: 9 }, false), 0);
        }
    }

    #[test]
    fn the_system_has_both_clocks() {
        let (first, second) = (Clock::now(), Clock::now());
        assert!(first.wall_ms > START && second.steady_ms >= first.steady_ms);
    }
}
