//! Encodes a pull request.
//!
//! Source: `PullMessageRequestHeader`, `PullSysFlag`.
use super::options::Queue;
use super::options::{PullerOptions, Subscription};
use super::state::Request;
use rmqfast_remoting::code::request::PULL_MESSAGE;
use rmqfast_remoting::{Header, Value};

#[derive(Clone, Copy, Debug)]
pub struct PullHeader<'a> {
    pub consumer_group: &'a str,
    pub queue: &'a Queue,
    pub offset: i64,
    pub max_messages: i64,
    /// Bits of `PullSysFlag`. SUSPEND and COMMIT_OFFSET are set from the other fields.
    pub sys_flag: i32,
    /// Offset of the group to store; 0 for none.
    pub commit_offset: i64,
    /// Time for which the broker holds a pull that finds nothing, in milliseconds.
    pub suspend_millis: i64,
    pub subscription: &'a Subscription,
}

impl<'a> PullHeader<'a> {
    /// Returns the fields of the header, in the order in which they are signed.
    pub fn fields(&self) -> Vec<(&'a str, Value<'a>)> {
        let Self { queue, subscription, .. } = *self;
        let mut flag = self.sys_flag & !(PullerOptions::SUSPEND | PullerOptions::COMMIT_OFFSET);
        if self.suspend_millis > 0 {
            flag |= PullerOptions::SUSPEND;
        }
        // as in Java: 0 means unknown, and storing it would set the group back
        if self.commit_offset > 0 {
            flag |= PullerOptions::COMMIT_OFFSET;
        }
        let mut fields = vec![
            ("consumerGroup", Value::Text(self.consumer_group)),
            ("topic", Value::Text(&queue.topic)),
            ("queueId", Value::Number(queue.queue_id.into())),
            ("queueOffset", Value::Number(self.offset)),
            ("maxMsgNums", Value::Number(self.max_messages)),
            ("sysFlag", Value::Number(flag.into())),
            ("commitOffset", Value::Number(self.commit_offset)),
            ("suspendTimeoutMillis", Value::Number(self.suspend_millis)),
            ("subVersion", Value::Number(subscription.version)),
            ("expressionType", Value::Text(&subscription.expression_type)),
        ];
        if flag & PullerOptions::SUBSCRIPTION != 0 {
            fields.push(("subscription", Value::Text(&subscription.expression)));
        }
        fields
    }
}

/// Appends the frame of a pull request to `out`.
///
/// # Errors
/// The error of the signer.
pub fn write(request: &Request, options: &PullerOptions, out: &mut Vec<u8>) -> Result<(), String> {
    let header = PullHeader {
        consumer_group: &options.consumer_group,
        queue: &request.queue,
        offset: request.pull.offset,
        max_messages: request.pull.max_messages,
        sys_flag: options.sys_flag,
        commit_offset: request.commit_offset,
        // before the queue's end there are messages, and a held answer would block its stretch
        suspend_millis: if request.pull.at_end { options.suspend.as_millis() as i64 } else { 0 },
        subscription: &request.subscription,
    };
    let mut fields = header.fields();
    fields.extend(options.ext_fields.iter().map(|(name, value)| (name.as_str(), Value::Text(value))));
    let signature = match &options.sign {
        // last, as it covers all other fields
        Some(sign) => sign(PULL_MESSAGE, &texts(&fields), b"")?,
        None => Vec::new(),
    };
    fields.extend(signature.iter().map(|(name, value)| (name.as_str(), Value::Text(value))));
    Header::request(PULL_MESSAGE, request.opaque, &fields).write(b"", out);
    Ok(())
}

/// Converts the values of header fields to strings.
pub fn texts(fields: &[(&str, Value<'_>)]) -> Vec<(String, String)> {
    let text = |value: &Value<'_>| match value {
        Value::Text(text) => (*text).to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
    };
    fields.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
}
