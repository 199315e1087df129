//! Delayed messages. They are appended to the queue of their level, and delivered to their own topic later.
//!
//! Source: `CommitLog.asyncPutMessage`, `ScheduleMessageService.parseDelayLevel`, `delayLevel2QueueId`.
use crate::store::delay_levels::DelayLevels;
pub use crate::store::unlisted::DELAY_TOPIC;

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
