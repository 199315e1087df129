//! The options of retention: limits of age and disk usage.
//!
//! Source: `MessageStoreConfig`, and `CleanCommitLogService` for the ratios that are properties of the JVM.
use super::delete_when::DeleteWhen;
use crate::{Error, Result};

const HOUR_MS: i64 = 3_600_000;
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
    /// Milliseconds until the first run.
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
}
