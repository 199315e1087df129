//! Parses the header of a PULL_MESSAGE request.
//!
//! Source: `PullMessageRequestHeader`, `PullSysFlag`.
use crate::send_header::{missing_field, number};
use rmqfast_remoting::Command;

const COMMIT_OFFSET: i32 = 1;
const SUSPEND: i32 = 2;
const SUBSCRIPTION: i32 = 4;
const TAG: &str = "TAG";

#[derive(Clone, Copy, Debug, Default)]
pub struct PullHeader<'a> {
    pub group: &'a str,
    pub topic: &'a str,
    pub queue_id: i32,
    /// Queue offset from which the client wants messages.
    pub queue_offset: i64,
    pub max_messages: i32,
    sys_flag: i32,
    /// Offset to commit for the group, if [`commits_offset`](Self::commits_offset).
    pub commit_offset: i64,
    /// Milliseconds for which the request may wait at the broker.
    pub suspend_ms: u64,
    /// Subscription that the request carries, as a string.
    pub subscription: Option<&'a str>,
    pub sub_version: i64,
    pub expression_type: Option<&'a str>,
}

impl<'a> PullHeader<'a> {
    /// Parses the fields of a request.
    ///
    /// # Errors
    /// A text that names the missing or invalid field.
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
                    // a negative time counts as no hold
                    (header.suspend_ms, seen[7]) = (number::<i64>(name, value)?.max(0).cast_unsigned(), true);
                }
                "subVersion" => (header.sub_version, seen[8]) = (number(name, value)?, true),
                "subscription" => header.subscription = Some(value),
                "expressionType" => header.expression_type = Some(value),
                // 5.x clients send further fields
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

    pub fn commits_offset(&self) -> bool {
        self.sys_flag & COMMIT_OFFSET != 0
    }

    /// Returns whether the request may wait at the broker for a message.
    pub fn may_be_parked(&self) -> bool {
        self.sys_flag & SUSPEND != 0
    }

    /// Returns whether the consumer filters by tags, so that it checks the tags of each message itself.
    ///
    /// Source: `PullAPIWrapper.processPullResult`.
    pub fn wants_tags(&self) -> bool {
        self.expression_type == Some(TAG)
    }

    pub fn has_subscription(&self) -> bool {
        self.sys_flag & SUBSCRIPTION != 0
    }
}
