//! A pull as it goes over the wire.
//!
//! Source: `PullMessageRequestHeader`, `PullSysFlag`.
use super::options::Queue;
use super::options::{PullerOptions, Subscription};
use super::state::Request;
use rmqfast_remoting::code::request::PULL_MESSAGE;
use rmqfast_remoting::{Header, Value};

/// The header of a PULL_MESSAGE request.
#[derive(Clone, Copy, Debug)]
pub struct PullHeader<'a> {
    /// The group in whose name it is pulled.
    pub consumer_group: &'a str,
    pub queue: &'a Queue,
    pub offset: i64,
    pub max_messages: i64,
    /// Of `PullSysFlag`; the bits for "suspend" and "commit" follow from the rest.
    pub sys_flag: i32,
    /// The group's offset, to be stored; 0 for nothing.
    pub commit_offset: i64,
    /// The broker holds a pull that finds nothing for this time, in milliseconds.
    pub suspend_millis: i64,
    /// The filter that the broker applies.
    pub subscription: &'a Subscription,
}

impl<'a> PullHeader<'a> {
    /// The fields of the header, in the order in which they are signed.
    pub fn fields(&self) -> Vec<(&'a str, Value<'a>)> {
        let Self { queue, subscription, .. } = *self;
        let mut flag = self.sys_flag & !(PullerOptions::SUSPEND | PullerOptions::COMMIT_OFFSET);
        if self.suspend_millis > 0 {
            flag |= PullerOptions::SUSPEND;
        }
        // as in Java: 0 is what is not known, and would set the group back
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

/// Appends the frame of a request.
///
/// # Errors
/// What the signer says.
pub fn write(request: &Request, options: &PullerOptions, out: &mut Vec<u8>) -> Result<(), String> {
    let header = PullHeader {
        consumer_group: &options.consumer_group,
        queue: &request.queue,
        offset: request.pull.offset,
        max_messages: request.pull.max_messages,
        sys_flag: options.sys_flag,
        commit_offset: request.commit_offset,
        // elsewhere there is something to bring, and an answer that is held would block its stretch
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

/// Fields as texts, in their order.
pub fn texts(fields: &[(&str, Value<'_>)]) -> Vec<(String, String)> {
    let text = |value: &Value<'_>| match value {
        Value::Text(text) => (*text).to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
    };
    fields.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
}
