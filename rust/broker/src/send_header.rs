//! Parses the header of SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE requests.
//!
//! Source: `SendMessageRequestHeader`, `SendMessageRequestHeaderV2`.
use rmqfast_remoting::Command;

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
    /// Number of failed deliveries to consumers.
    pub reconsume_times: i32,
}

impl<'a> SendHeader<'a> {
    /// Parses the fields of a request. `is_short` means that the fields have the one-letter names of SEND_MESSAGE_V2.
    ///
    /// # Errors
    /// A text that names the missing or invalid field.
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

/// Returns the text of the error for a missing field.
pub fn missing_field(name: &str) -> String {
    format!("the header field {name} is missing")
}

/// Parses a number in a header field.
///
/// # Errors
/// A text that names the field.
pub fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| {
        let start: String = value.chars().take(40).collect();
        format!("the header field {name} is no number: {start:?}")
    })
}
