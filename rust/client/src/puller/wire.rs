//! A pull as it goes over the wire.
//!
//! Source: `PullMessageRequestHeader`, `PullSysFlag`.
use super::options::PullerOptions;
use super::state::Request;
use rmqfast_remoting::{Header, Value};

/// `RequestCode.PULL_MESSAGE`.
const PULL_MESSAGE: i32 = 11;

/// Appends the frame of a request.
///
/// # Errors
/// What the signer says.
pub fn write(request: &Request, options: &PullerOptions, out: &mut Vec<u8>) -> Result<(), String> {
    let suspend = if request.wanted.at_end { options.suspend.as_millis() as i64 } else { 0 };
    let mut flag = options.sys_flag & !(PullerOptions::SUSPEND | PullerOptions::COMMIT_OFFSET);
    if suspend > 0 {
        flag |= PullerOptions::SUSPEND;
    }
    if request.commit_offset > 0 {
        flag |= PullerOptions::COMMIT_OFFSET;
    }
    let subscription = &request.subscription;
    let mut fields = vec![
        ("consumerGroup", Value::Text(&options.consumer_group)),
        ("topic", Value::Text(&request.queue.topic)),
        ("queueId", Value::Number(request.queue.queue_id.into())),
        ("queueOffset", Value::Number(request.wanted.offset)),
        ("maxMsgNums", Value::Number(request.wanted.max_messages)),
        ("sysFlag", Value::Number(flag.into())),
        ("commitOffset", Value::Number(request.commit_offset)),
        ("suspendTimeoutMillis", Value::Number(suspend)),
        ("subVersion", Value::Number(subscription.version)),
        ("expressionType", Value::Text(&subscription.expression_type)),
    ];
    if flag & PullerOptions::SUBSCRIPTION != 0 {
        fields.push(("subscription", Value::Text(&subscription.expression)));
    }
    fields.extend(options.ext_fields.iter().map(|(name, value)| (name.as_str(), Value::Text(value))));
    let signature = match &options.sign {
        Some(sign) => sign(PULL_MESSAGE, &texts(&fields))?,
        None => Vec::new(),
    };
    fields.extend(signature.iter().map(|(name, value)| (name.as_str(), Value::Text(value))));
    Header::request(PULL_MESSAGE, request.opaque, &fields).write(b"", out);
    Ok(())
}

fn texts(fields: &[(&str, Value<'_>)]) -> Vec<(String, String)> {
    let text = |value: &Value<'_>| match value {
        Value::Text(text) => (*text).to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
    };
    fields.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
}
