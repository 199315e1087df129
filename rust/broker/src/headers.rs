//! Parses the headers of PULL_MESSAGE, SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE requests.
//!
//! Source: `PullMessageRequestHeader`, `PullSysFlag`, `SendMessageRequestHeader`, `SendMessageRequestHeaderV2`,
//! `PullAPIWrapper.processPullResult`.
use crate::ledger::Place;
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
    pub queue_offset: i64,
    pub max_messages: i32,
    sys_flag: i32,
    /// Offset to commit for the group, if [`commits_offset`](Self::commits_offset).
    pub commit_offset: i64,
    /// Milliseconds for which the request may wait at the broker.
    pub suspend_ms: u64,
    pub subscription: Option<&'a str>,
    pub sub_version: i64,
    pub expression_type: Option<&'a str>,
    /// Id of the client, which only rmqfast's clients send: their pulls do not take the connection of heartbeats.
    pub client_id: Option<&'a str>,
}

impl<'a> PullHeader<'a> {
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
                "clientId" => header.client_id = Some(value),
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

    pub fn place(&self) -> Place<'a> {
        Place { group: self.group, topic: self.topic, queue_id: self.queue_id }
    }

    pub fn commits_offset(&self) -> bool {
        self.sys_flag & COMMIT_OFFSET != 0
    }

    /// Returns whether the request may wait at the broker for a message.
    pub fn may_be_parked(&self) -> bool {
        self.sys_flag & SUSPEND != 0
    }

    /// Returns whether the consumer filters by tags. If so, the consumer compares the tag of each message itself.
    pub fn wants_tags(&self) -> bool {
        self.expression_type == Some(TAG)
    }

    pub fn has_subscription(&self) -> bool {
        self.sys_flag & SUBSCRIPTION != 0
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SendHeader<'a> {
    pub topic: &'a str,
    /// Queue id. A negative id lets the broker choose a queue.
    pub queue_id: i32,
    /// Bits of `MessageSysFlag`, without the bits for IPv6 hosts.
    pub sys_flag: i32,
    pub born_timestamp: i64,
    /// The application's flag of 32 bits.
    pub flag: i32,
    pub properties: &'a str,
    pub reconsume_times: i32,
}

impl<'a> SendHeader<'a> {
    /// Parses the fields of a request. `is_short` means that the fields have the one-letter names of SEND_MESSAGE_V2.
    pub fn read(request: &'a Command<'_>, is_short: bool) -> Result<Self, String> {
        let mut header = Self::default();
        let mut seen = [false; 5];
        for (name, value) in &request.fields {
            let value = value.as_ref();
            match (is_short, name.as_ref()) {
                (true, "b") | (false, "topic") => (header.topic, seen[0]) = (value, true),
                (true, "e") | (false, "queueId") => (header.queue_id, seen[1]) = (number("queueId", value)?, true),
                (true, "f") | (false, "sysFlag") => (header.sys_flag, seen[2]) = (number("sysFlag", value)?, true),
                (true, "g") | (false, "bornTimestamp") => {
                    (header.born_timestamp, seen[3]) = (number("bornTimestamp", value)?, true);
                }
                (true, "h") | (false, "flag") => (header.flag, seen[4]) = (number("flag", value)?, true),
                (true, "i") | (false, "properties") => header.properties = value,
                (true, "j") | (false, "reconsumeTimes") => header.reconsume_times = number("reconsumeTimes", value)?,
                // producer group, default topic and maximum of retries are for the control plane; 5.x sends more
                _ => {}
            }
        }
        match seen.iter().position(|seen| !seen) {
            None => Ok(header),
            Some(missing) => Err(missing_field(["topic", "queueId", "sysFlag", "bornTimestamp", "flag"][missing])),
        }
    }
}

pub fn missing_field(name: &str) -> String {
    format!("the header field {name} is missing")
}

/// Parses a number in a header field.
pub fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| {
        let start: String = value.chars().take(40).collect();
        format!("the header field {name} is no number: {start:?}")
    })
}
