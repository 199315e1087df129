//! Delayed messages: put into the queue of their level, to be delivered to their own topic later.
//!
//! Source: `CommitLog.asyncPutMessage`, `ScheduleMessageService.parseDelayLevel`, `delayLevel2QueueId`.
pub use crate::store::unlisted::DELAY_TOPIC;
use crate::store::unlisted::delay_millis;

/// The highest level of a broker as it ships.
const MAX_LEVEL: i64 = 18;

/// A delay level, 1 to 18.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    level: i32,
}

impl Delay {
    /// The level that a property `DELAY` asks for; `None` for 0 and below, an error for what is no number.
    pub fn parse(value: &[u8]) -> Result<Option<Self>, std::num::ParseIntError> {
        let level: i64 = String::from_utf8_lossy(value).parse::<i32>()?.into();
        Ok((level > 0).then(|| Self { level: level.min(MAX_LEVEL) as i32 }))
    }

    /// What `DELAY` says once stored.
    pub fn level(self) -> i32 {
        self.level
    }

    /// Queue of the delay topic.
    pub fn queue_id(self) -> i32 {
        self.level - 1
    }

    /// When to deliver, in milliseconds: what the consume queue holds instead of a tag's hash.
    pub fn deliver_timestamp(self, store_timestamp: i64) -> i64 {
        store_timestamp + delay_millis(self.level.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_clamped_and_zero_is_none() {
        let level = |text: &str| Delay::parse(text.as_bytes()).map(|d| d.map(Delay::level));
        assert_eq!((level("3"), level("99"), level("0"), level("-1")), (Ok(Some(3)), Ok(Some(18)), Ok(None), Ok(None)));
        assert!(level("soon").is_err());
        let delay = Delay::parse(b"5").expect("a number").expect("a level");
        assert_eq!((delay.queue_id(), delay.deliver_timestamp(1000)), (4, 61_000));
    }
}
