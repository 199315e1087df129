//! The options of retention: how long files stay, and how full a disk may be.
//!
//! Source: `MessageStoreConfig`; `CleanCommitLogService` for the ratios that are properties of the JVM.
use super::delete_when::DeleteWhen;
use crate::{Error, Result};

const HOUR_MS: i64 = 3_600_000;
/// What `diskMaxUsedSpaceRatio` is kept within.
const MAX_USED: std::ops::RangeInclusive<u8> = 10..=95;

/// How retention decides. Percents are of the disk that holds the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetainOptions {
    /// Hours that a log file stays after it was last written (`fileReservedTime`).
    pub file_reserved_hours: u32,
    /// At which hours files go by age (`deleteWhen`).
    pub delete_when: DeleteWhen,
    /// Fuller than this, files go by age at any hour (`diskMaxUsedSpaceRatio`); taken for 10 below that, for 95 above.
    pub disk_max_used_percent: u8,
    /// Fuller than this, the oldest go however young (`rocketmq.broker.diskSpaceCleanForciblyRatio`).
    pub force_percent: u8,
    /// Fuller than this, nothing is appended (`rocketmq.broker.diskSpaceWarningLevelRatio`).
    pub warning_percent: u8,
    /// Whether files that are too young may go at all (`cleanFileForciblyEnable`).
    pub clean_forcibly: bool,
    /// Milliseconds after which the owner's thread first looks at how full the disk is.
    pub first_look_ms: i64,
    /// Milliseconds after which the first run of the owner's thread comes.
    pub first_run_ms: i64,
    /// Milliseconds between two of its runs (`cleanResourceInterval`).
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
    /// The options, `disk_max_used_percent` within what RocketMQ allows.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a percentage that is none.
    pub fn checked(self) -> Result<Self> {
        for (what, got) in [("force_ratio", self.force_percent), ("warning_ratio", self.warning_percent)] {
            if !(1..=100).contains(&got) {
                return Err(Error::invalid(what, "1 to 100 percent", got));
            }
        }
        let disk_max_used_percent = self.disk_max_used_percent.clamp(*MAX_USED.start(), *MAX_USED.end());
        Ok(Self { disk_max_used_percent, ..self })
    }

    /// Milliseconds that a file stays.
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
            assert_eq!(options.checked().expect("checked").disk_max_used_percent, expected, "{configured}");
        }
    }

    #[test]
    fn a_percentage_that_is_none_is_refused() {
        let default = RetainOptions::default();
        for (wrong, name) in [
            (RetainOptions { force_percent: 0, ..default }, "force_ratio"),
            (RetainOptions { warning_percent: 101, ..default }, "warning_ratio"),
        ] {
            assert!(wrong.checked().expect_err("refused").to_string().contains(name));
        }
    }
}
