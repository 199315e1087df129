//! Delay levels, and delayed messages. A delayed message is appended to the queue of its level, and delivered to its own topic
//! later.
//!
//! Source: `MessageStoreConfig.messageDelayLevel`, `ScheduleMessageService.parseDelayLevel`, `CommitLog.asyncPutMessage`,
//! `delayLevel2QueueId`.
use crate::{Error, Result};

/// The topic that holds delayed messages (`TopicValidator.RMQ_SYS_SCHEDULE_TOPIC`).
pub const DELAY_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";
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

/// A delay level, counted from 1, with its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    level: i32,
    millis: i64,
}

impl Delay {
    /// Parses the value of the property `DELAY`. Returns `None` for a level of 0 or below. Fails for a value that is
    /// not a number.
    pub fn parse(value: &[u8], levels: &DelayLevels) -> Result<Option<Self>, std::num::ParseIntError> {
        let level: i64 = String::from_utf8_lossy(value).parse::<i32>()?.into();
        let level = level.min(levels.max());
        Ok((level > 0).then(|| Self { level: level as i32, millis: levels.millis(level) }))
    }

    pub fn level(self) -> i32 {
        self.level
    }

    pub fn queue_id(self) -> i32 {
        self.level - 1
    }

    /// Returns the time of delivery in milliseconds. It takes the place of the tag hash in the consume queue.
    pub fn deliver_timestamp(self, store_timestamp: i64) -> i64 {
        store_timestamp + self.millis
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

    #[test]
    fn levels_are_clamped_and_zero_is_none() {
        let levels = DelayLevels::default();
        let level = |text: &str| Delay::parse(text.as_bytes(), &levels).map(|d| d.map(Delay::level));
        assert_eq!((level("3"), level("99"), level("0"), level("-1")), (Ok(Some(3)), Ok(Some(18)), Ok(None), Ok(None)));
        assert!(level("soon").is_err());
        let delay = Delay::parse(b"5", &levels).expect("a number").expect("a level");
        assert_eq!((delay.queue_id(), delay.deliver_timestamp(1000)), (4, 61_000));
        let own = DelayLevels::new(&[3, 4]).expect("two levels");
        let delay = Delay::parse(b"5", &own).expect("a number").expect("a level");
        assert_eq!((delay.level(), delay.deliver_timestamp(1000)), (2, 5_000));
    }
}
