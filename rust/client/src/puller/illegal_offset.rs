//! The rules for OFFSET_ILLEGAL: a broker's answer to a pull from an offset that the queue does not have.
//!
//! ```text
//!  consumer                  the offset has expired                       the offset is behind the queue's end
//!  ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
//!  every puller              hands the answer out, drops what it read behind it, plans nothing before a seek
//!  range with an end         a loss; goes on at the queue's first offset  waits while the broker recovers, then a loss
//!  range without an end      the same                                     waits, without limit
//!  lite pull consumer        seeks to the broker's next offset            the same; to the first of a recreated topic
//!  push consumer             gives the queue up, and restarts there       the same
//!  pull by hand              returns the status to the caller             the same
//! ```
//!
//! A puller never chooses an offset itself: only its consumer knows whether messages may be skipped. Ranges decide in
//! `ranges/progress.rs`, consumers of Python in `rmqfast/client/pulling/illegal_offset.py`.
//!
//! Source: `DefaultMQPushConsumerImpl.pullMessage`, `DefaultLitePullConsumerImpl.PullTaskImpl`, `PullStatus.OFFSET_ILLEGAL`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IllegalOffset {
    /// Retention removed the message at this offset.
    Expired,
    /// The offset is after the queue's end: the broker lost its last messages, or the topic was deleted and created
    /// again.
    BehindEnd,
}

impl IllegalOffset {
    /// Returns the reason for `offset`, given the first offset of the queue.
    pub fn of(offset: i64, min_offset: i64) -> Self {
        if offset < min_offset { Self::Expired } else { Self::BehindEnd }
    }
}
