//! Decides which log files to remove. Works on values only, without access to disk or clock.
//!
//! Source: `CleanCommitLogService.deleteExpiredFiles`, `isTimeToDelete`, `isSpaceToDelete`; `MappedFileQueue.deleteExpiredFileByTime`.
use super::clock::Clock;
use super::options::RetainOptions;

/// Maximum number of log files to remove in one run (`MappedFileQueue.DELETE_FILES_BATCH_MAX`).
pub const MAX_FILES: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    pub clock: Clock,
    /// Used part of the disk in percent; `None` if it is unknown.
    pub used_percent: Option<u8>,
    /// Whether a person has started the run. If so, files expire at any hour, and the time of day is trusted.
    pub manual: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub by_age: bool,
    /// Whether the oldest files are removed even if they have not expired.
    pub forced: bool,
}

/// Decides which log files a run may remove. `is_time_trusted` is the result of the
/// [`ClockWatch`](super::clock::ClockWatch).
pub fn decide(options: &RetainOptions, situation: &Situation, zone_offset_ms: i64, is_time_trusted: bool) -> Decision {
    let used = situation.used_percent;
    let is_hour = options.delete_when.contains(situation.clock.wall_ms, zone_offset_ms);
    // An unknown usage counts as full enough to remove expired files, but not to force a removal.
    let needs_space = used.is_none_or(|used| used > options.disk_max_used_percent);
    // Both ratios force a removal, as in Java. The higher ratio also refuses messages.
    let is_forced = used.is_some_and(|used| used > options.force_percent.min(options.warning_percent));
    let is_run = is_hour || needs_space || situation.manual;
    Decision { by_age: is_run && is_time_trusted, forced: is_run && is_forced && options.clean_forcibly }
}

/// Returns whether appends are allowed on a disk with this usage.
pub fn is_writable(options: &RetainOptions, used_percent: Option<u8>) -> bool {
    used_percent.is_none_or(|used| used <= options.warning_percent)
}

impl Decision {
    /// Returns the number of log files to remove, oldest first. `modified_ms` holds the modification times of all files but the
    /// last.
    pub fn count_expired(self, modified_ms: &[i64], now_ms: i64, reserved_ms: i64) -> usize {
        let is_old = |modified: &i64| self.by_age && now_ms >= modified.saturating_add(reserved_ms);
        // The first file that stays ends the count, because a log has no holes.
        modified_ms.iter().take_while(|modified| self.forced || is_old(modified)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::delete_when::DeleteWhen;
    use super::*;

    const HOUR: i64 = 3_600_000;
    const MIDNIGHT: i64 = 19_675 * 24 * HOUR;

    fn at(hour: i64, used: Option<u8>, manual: bool) -> Situation {
        Situation { clock: Clock { wall_ms: MIDNIGHT + hour * HOUR, steady_ms: 0 }, used_percent: used, manual }
    }

    fn of(situation: Situation) -> (bool, bool) {
        let decision = decide(&RetainOptions::default(), &situation, 0, true);
        (decision.by_age, decision.forced)
    }

    #[test]
    fn files_go_at_their_hour_or_when_the_disk_fills_or_when_asked() {
        for (hour, used, manual, expected) in [
            (3, Some(10), false, (false, false)),
            (4, Some(10), false, (true, false)),
            (5, Some(75), false, (false, false)),
            (5, Some(76), false, (true, false)),
            (5, Some(85), false, (true, false)),
            (5, Some(86), false, (true, true)),
            (5, Some(91), false, (true, true)),
            (5, Some(10), true, (true, false)),
            (5, Some(86), true, (true, true)),
            (5, None, false, (true, false)),
        ] {
            assert_eq!(of(at(hour, used, manual)), expected, "{hour} {used:?} {manual}");
        }
    }

    #[test]
    fn a_disk_that_may_be_fuller_than_what_forces_waits_for_the_hour() {
        let options = RetainOptions { disk_max_used_percent: 95, ..RetainOptions::default() };
        let forced = |hour| decide(&options, &at(hour, Some(88), false), 0, true).forced;
        assert_eq!((forced(5), forced(4)), (false, true));
    }

    #[test]
    fn what_is_young_stays_where_nothing_may_be_forced() {
        let options = RetainOptions { clean_forcibly: false, ..RetainOptions::default() };
        let decision = decide(&options, &at(5, Some(99), false), 0, true);
        assert_eq!(decision, Decision { by_age: true, forced: false });
    }

    #[test]
    fn a_clock_that_is_not_believed_leaves_only_what_is_forced() {
        let decision = |used| decide(&RetainOptions::default(), &at(4, Some(used), false), 0, false);
        assert_eq!(decision(80), Decision::default());
        assert_eq!(decision(86), Decision { by_age: false, forced: true });
    }

    #[test]
    fn the_hour_is_that_of_the_local_time() {
        let options = RetainOptions { delete_when: DeleteWhen::parse("12").expect("noon"), ..RetainOptions::default() };
        let by_age = |zone| decide(&options, &at(4, Some(1), false), zone, true).by_age;
        assert_eq!((by_age(0), by_age(8 * HOUR)), (false, true));
    }

    #[test]
    fn a_disk_takes_messages_up_to_its_limit() {
        let options = RetainOptions::default();
        assert_eq!([Some(90), Some(91), None].map(|used| is_writable(&options, used)), [true, false, true]);
    }

    #[test]
    fn the_oldest_go_up_to_the_first_that_is_not_old_enough() {
        let aged = Decision { by_age: true, forced: false };
        let forced = Decision { by_age: false, forced: true };
        for (decision, modified, expected) in [
            (aged, vec![10, 20, 30], 2),
            (aged, vec![10, 31, 20], 1),
            (aged, vec![31, 10], 0),
            (aged, vec![20], 1),
            (aged, vec![21], 0),
            (aged, vec![i64::MAX, 0], 0),
            (aged, vec![500, 0], 0),
            (forced, vec![500, 0, 90], 3),
            (Decision::default(), vec![0, 0], 0),
            (aged, vec![], 0),
        ] {
            assert_eq!(decision.count_expired(&modified, 120, 100), expected, "{decision:?} {modified:?}");
        }
    }
}
