//! The options of retention, limits of age and disk usage, and the decision which log files to remove by them.
//!
//! Source: `MessageStoreConfig`, `CleanCommitLogService`, `UtilAll.isItTimeToDo`, `CleanCommitLogService.deleteExpiredFiles`,
//! `isTimeToDelete`, `isSpaceToDelete`, `MappedFileQueue.deleteExpiredFileByTime`.
use super::clock::Clock;
use crate::{Error, Result};

const MAX_USED: std::ops::RangeInclusive<u8> = 10..=95;

/// The options of retention. Percentages are of the disk that holds the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetainOptions {
    /// Hours that a log file stays after its last write (`fileReservedTime`).
    pub file_reserved_hours: u32,
    /// Hours of the day for removal by age (`deleteWhen`).
    pub delete_when: DeleteWhen,
    /// Usage in percent above which expired files are removed at any hour (`diskMaxUsedSpaceRatio`). Clamped to 10 to 95.
    pub disk_max_used_percent: u8,
    /// Usage in percent above which the oldest files are removed even if they have not expired
    /// (`rocketmq.broker.diskSpaceCleanForciblyRatio`).
    pub force_percent: u8,
    /// Usage in percent above which nothing is appended (`rocketmq.broker.diskSpaceWarningLevelRatio`).
    pub warning_percent: u8,
    /// Whether files that have not expired may be removed (`cleanFileForciblyEnable`).
    pub clean_forcibly: bool,
    /// Milliseconds until the first check of the disk.
    pub first_look_ms: i64,
    pub first_run_ms: i64,
    /// Milliseconds between two runs (`cleanResourceInterval`).
    pub interval_ms: i64,
}

impl Default for RetainOptions {
    fn default() -> Self {
        Self {
            file_reserved_hours: 72,
            delete_when: DeleteWhen::default(),
            disk_max_used_percent: 75,
            force_percent: 85,
            warning_percent: 90,
            clean_forcibly: true,
            first_look_ms: 1_000,
            first_run_ms: 60_000,
            interval_ms: 10_000,
        }
    }
}

impl RetainOptions {
    /// Checks the percentages, and clamps `disk_max_used_percent` as RocketMQ does.
    pub fn check(self) -> Result<Self> {
        for (what, got) in [("force_ratio", self.force_percent), ("warning_ratio", self.warning_percent)] {
            if !(1..=100).contains(&got) {
                return Err(Error::invalid(what, "1 to 100 percent", got));
            }
        }
        let disk_max_used_percent = self.disk_max_used_percent.clamp(*MAX_USED.start(), *MAX_USED.end());
        Ok(Self { disk_max_used_percent, ..self })
    }

    pub fn reserved_ms(&self) -> i64 {
        i64::from(self.file_reserved_hours) * HOUR_MS
    }
}

const HOUR_MS: i64 = 3_600_000;
const HOURS: u32 = 24;

/// The hours of the day at which expired files are removed (`deleteWhen`), one bit for each hour. In Java an invalid number
/// skips the whole run, and an hour above 23 never comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteWhen(u32);

impl Default for DeleteWhen {
    fn default() -> Self {
        Self(1 << 4)
    }
}

impl DeleteWhen {
    /// Parses hours separated by `;`, such as `04` or `04;16`.
    pub fn parse(text: &str) -> Result<Self> {
        let refused = || Error::invalid("delete_when", "hours from 00 to 23, with ';' between several", text);
        // Java's `split` drops an empty last part.
        let hours = text.strip_suffix(';').unwrap_or(text).split(';');
        let bits = hours.map(|hour| hour.parse().ok().filter(|hour: &u32| *hour < HOURS).map(|hour| 1 << hour));
        let all = bits.collect::<Option<Vec<u32>>>().ok_or_else(refused)?;
        Ok(Self(all.into_iter().fold(0, |set, bit| set | bit)))
    }

    pub fn contains(self, now_ms: i64, zone_offset_ms: i64) -> bool {
        let hour = now_ms.saturating_add(zone_offset_ms).div_euclid(HOUR_MS).rem_euclid(i64::from(HOURS));
        self.0 & (1 << hour) != 0
    }
}

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
    use super::*;

    #[test]
    fn the_ratio_is_kept_within_ten_and_ninety_five() {
        for (configured, expected) in [(0, 10), (9, 10), (10, 10), (75, 75), (95, 95), (96, 95), (255, 95)] {
            let options = RetainOptions { disk_max_used_percent: configured, ..RetainOptions::default() };
            assert_eq!(options.check().expect("checked").disk_max_used_percent, expected, "{configured}");
        }
    }

    #[test]
    fn a_percentage_that_is_none_is_refused() {
        let default = RetainOptions::default();
        for (wrong, name) in [
            (RetainOptions { force_percent: 0, ..default }, "force_ratio"),
            (RetainOptions { warning_percent: 101, ..default }, "warning_ratio"),
        ] {
            assert!(wrong.check().expect_err("refused").to_string().contains(name));
        }
    }

    /// Returns 1970-01-02 at `hour` UTC, plus `ms` milliseconds.
    fn at(hour: i64, ms: i64) -> i64 {
        (24 + hour) * HOUR_MS + ms
    }

    #[test]
    fn an_hour_is_met_from_its_first_millisecond_to_its_last_in_local_time() {
        let four = DeleteWhen::default();
        assert_eq!(four, DeleteWhen::parse("04").expect("an hour"));
        for (now, zone, expected) in [
            (at(4, 0), 0, true),
            (at(4, HOUR_MS - 1), 0, true),
            (at(5, 0), 0, false),
            (at(4, -1), 0, false),
            (at(20, 0), 8 * HOUR_MS, true),
            (at(4, 0), 8 * HOUR_MS, false),
            (at(9, 30 * 60_000), -(5 * HOUR_MS + HOUR_MS / 2), true),
            (at(4, 0) - 10 * 24 * HOUR_MS, 0, true),
        ] {
            assert_eq!(four.contains(now, zone), expected, "{now} {zone}");
        }
    }

    #[test]
    fn several_hours_are_separated_by_semicolons() {
        for text in ["4;16", "04;16", "16;04;", "4;16;16"] {
            let when = DeleteWhen::parse(text).expect("hours");
            let met: Vec<i64> = (0..24).filter(|hour| when.contains(at(*hour, 7), 0)).collect();
            assert_eq!(met, [4, 16], "{text}");
        }
    }

    #[test]
    fn what_is_no_hour_is_refused() {
        for text in ["", ";", "24", "-1", "4,16", "4;;16", "4; 16", "noon"] {
            let error = DeleteWhen::parse(text).expect_err(text).to_string();
            assert!(error.contains("delete_when") && error.contains("00 to 23"), "{error}");
        }
    }

    const HOUR: i64 = 3_600_000;
    const MIDNIGHT: i64 = 19_675 * 24 * HOUR;

    fn situation_at(hour: i64, used: Option<u8>, manual: bool) -> Situation {
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
            assert_eq!(of(situation_at(hour, used, manual)), expected, "{hour} {used:?} {manual}");
        }
    }

    #[test]
    fn a_disk_that_may_be_fuller_than_what_forces_waits_for_the_hour() {
        let options = RetainOptions { disk_max_used_percent: 95, ..RetainOptions::default() };
        let forced = |hour| decide(&options, &situation_at(hour, Some(88), false), 0, true).forced;
        assert_eq!((forced(5), forced(4)), (false, true));
    }

    #[test]
    fn what_is_young_stays_where_nothing_may_be_forced() {
        let options = RetainOptions { clean_forcibly: false, ..RetainOptions::default() };
        let decision = decide(&options, &situation_at(5, Some(99), false), 0, true);
        assert_eq!(decision, Decision { by_age: true, forced: false });
    }

    #[test]
    fn a_clock_that_is_not_believed_leaves_only_what_is_forced() {
        let decision = |used| decide(&RetainOptions::default(), &situation_at(4, Some(used), false), 0, false);
        assert_eq!(decision(80), Decision::default());
        assert_eq!(decision(86), Decision { by_age: false, forced: true });
    }

    #[test]
    fn the_hour_is_that_of_the_local_time() {
        let options = RetainOptions { delete_when: DeleteWhen::parse("12").expect("noon"), ..RetainOptions::default() };
        let by_age = |zone| decide(&options, &situation_at(4, Some(1), false), zone, true).by_age;
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
