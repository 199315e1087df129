//! Parses the header of a PULL_MESSAGE request.
//!
//! Source: `PullMessageRequestHeader`, `PullSysFlag`.
use crate::send_header::{missing_field, number};
use rmqfast_remoting::Command;

const COMMIT_OFFSET: i32 = 1;
const SUSPEND: i32 = 2;
const SUBSCRIPTION: i32 = 4;
const TAG: &str = "TAG";

/// The header of `PULL_MESSAGE`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PullHeader<'a> {
    pub group: &'a str,
    pub topic: &'a str,
    pub queue_id: i32,
    /// Offset of the first message.
    pub queue_offset: i64,
    /// The most messages of one answer.
    pub max_messages: i32,
    sys_flag: i32,
    /// The group's offset, where it sends one.
    pub commit_offset: i64,
    /// Milliseconds for which the request may wait for a message.
    pub suspend_ms: u64,
    /// The subscription, where the request has its own.
    pub subscription: Option<&'a str>,
    /// Version of the subscription that the consumer knows.
    pub sub_version: i64,
    pub expression_type: Option<&'a str>,
}

impl<'a> PullHeader<'a> {
    /// Reads the fields of a request.
    ///
    /// # Errors
    /// What a person may read: the field that is missing or no number.
    pub fn read(request: &'a Command<'_>) -> Result<Self, String> {
        let mut header = Self::default();
        let mut seen = [false; 9];
        for (name, value) in &request.fields {
            let (name, value) = (name.as_ref(), value.as_ref());
            match name {
                "consumerGroup" => (header.group, seen[0]) = (value, true),
                "topic" => (header.topic, seen[1]) = (value, true),
                "queueId" => (header.queue_id, seen[2]) = (number(name, value)?, true),
                "queueOffset" => (header.queue_offset, seen[3]) = (number(name, value)?, true),
                "maxMsgNums" => (header.max_messages, seen[4]) = (number(name, value)?, true),
                "sysFlag" => (header.sys_flag, seen[5]) = (number(name, value)?, true),
                "commitOffset" => (header.commit_offset, seen[6]) = (number(name, value)?, true),
                "suspendTimeoutMillis" => {
                    (header.suspend_ms, seen[7]) = (number::<i64>(name, value)?.max(0).cast_unsigned(), true);
                }
                "subVersion" => (header.sub_version, seen[8]) = (number(name, value)?, true),
                "subscription" => header.subscription = Some(value),
                "expressionType" => header.expression_type = Some(value),
                // clients of 5.x send further fields
                _ => {}
            }
        }
        const NAMES: [&str; 9] = [
            "consumerGroup",
            "topic",
            "queueId",
            "queueOffset",
            "maxMsgNums",
            "sysFlag",
            "commitOffset",
            "suspendTimeoutMillis",
            "subVersion",
        ];
        seen.iter().position(|seen| !seen).map_or(Ok(header), |missing| Err(missing_field(NAMES[missing])))
    }

    /// Returns whether the request commits the group's offset.
    pub fn commits_offset(&self) -> bool {
        self.sys_flag & COMMIT_OFFSET != 0
    }

    /// Returns whether the request may wait for a message.
    pub fn may_be_parked(&self) -> bool {
        self.sys_flag & SUSPEND != 0
    }

    /// Returns whether the consumer says that it wants tags: it looks at those of each message once more itself.
    ///
    /// Source: `PullAPIWrapper.processPullResult`.
    pub fn wants_tags(&self) -> bool {
        self.expression_type == Some(TAG)
    }

    /// Returns whether the request has a subscription of its own.
    pub fn has_subscription(&self) -> bool {
        self.sys_flag & SUBSCRIPTION != 0
    }
}
