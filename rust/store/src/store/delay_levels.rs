//! The delay of each delay level.
//!
//! Source: `MessageStoreConfig.messageDelayLevel`, `ScheduleMessageService.parseDelayLevel`.
use crate::{Error, Result};

const MOST: usize = 32;
/// Default of `messageDelayLevel`, as seconds.
const SHIPPED: [u32; 18] = [1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200];

/// The delay levels of a broker, counted from 1. Readers of a store use the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayLevels {
    seconds: [u32; MOST],
    count: usize,
}

impl DelayLevels {
    pub fn new(seconds: &[u32]) -> Result<Self> {
        if seconds.is_empty() || seconds.len() > MOST {
            return Err(Error::invalid("delay_levels", format!("1 to {MOST} levels"), seconds.len()));
        }
        Ok(Self::of(seconds))
    }

    /// Returns the highest level. A message with a higher level gets this level.
    pub fn max(&self) -> i64 {
        self.count as i64
    }

    pub fn millis(&self, level: i64) -> i64 {
        let index = usize::try_from(level).unwrap_or_default().clamp(1, self.count) - 1;
        self.seconds.get(index).map_or(0, |seconds| i64::from(*seconds) * 1000)
    }

    fn of(levels: &[u32]) -> Self {
        let mut seconds = [0; MOST];
        seconds.iter_mut().zip(levels).for_each(|(to, from)| *to = *from);
        Self { seconds, count: levels.len() }
    }
}

impl Default for DelayLevels {
    fn default() -> Self {
        Self::of(&SHIPPED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_above_all_is_the_highest_and_no_levels_are_refused() {
        let levels = DelayLevels::new(&[2, 7]).expect("two levels");
        assert_eq!((levels.millis(1), levels.millis(2), levels.millis(99), levels.max()), (2_000, 7_000, 7_000, 2));
        assert_eq!(DelayLevels::default().millis(18), 7_200_000);
        assert!(DelayLevels::new(&[]).is_err() && DelayLevels::new(&[1; 33]).is_err());
    }
}
