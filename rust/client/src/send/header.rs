//! Header of a send request, in its second version: field names have one letter.
//!
//! Source: `SendMessageRequestHeaderV2`, `DefaultMQProducerImpl.sendKernelImpl`.
use rmqfast_remoting::Value;

// SEND_MESSAGE_V2
pub const CODE: i32 = 310;
// SEND_BATCH_MESSAGE
pub const BATCH_CODE: i32 = 320;
// SEND_REPLY_MESSAGE_V2
pub const REPLY_CODE: i32 = 325;

#[derive(Clone, Copy, Debug)]
pub struct SendHeader<'a> {
    pub producer_group: &'a str,
    pub topic: &'a str,
    /// Topic whose settings a broker copies to a topic that it creates, usually `TBW102`.
    pub default_topic: &'a str,
    pub default_topic_queue_nums: i32,
    pub queue_id: i32,
    /// Bits for the compression of the body and the kind of transaction.
    pub sys_flag: i32,
    /// Time of creation in milliseconds.
    pub born_timestamp: i64,
    /// The application's 32-bit flag.
    pub flag: i32,
    pub properties: &'a str,
    /// Failed deliveries so far, for retry topics.
    pub reconsume_times: i32,
    /// Limit of failed deliveries, for retry topics.
    pub max_reconsume_times: Option<i32>,
    /// Whether the producer belongs to a unit, RocketMQ's term for a part of a deployment (`unitMode`).
    pub is_unit_mode: bool,
    pub is_batch: bool,
    /// Whether the message is a reply. The broker then passes it to the client that sent the request.
    pub is_reply: bool,
}

impl<'a> SendHeader<'a> {
    /// Returns the request code for this kind of send.
    ///
    /// Source: `MQClientAPIImpl.sendMessage`.
    pub fn code(&self) -> i32 {
        match (self.is_batch, self.is_reply) {
            // batches use the one-letter names too
            (true, _) => BATCH_CODE,
            (false, true) => REPLY_CODE,
            (false, false) => CODE,
        }
    }

    /// Returns the fields by their one-letter names.
    pub fn fields(&self) -> Vec<(&'static str, Value<'a>)> {
        let number = |value: i32| Value::Number(value.into());
        let mut fields = Vec::with_capacity(13);
        fields.extend([
            ("a", Value::Text(self.producer_group)),
            ("b", Value::Text(self.topic)),
            ("c", Value::Text(self.default_topic)),
            ("d", number(self.default_topic_queue_nums)),
            ("e", number(self.queue_id)),
            ("f", number(self.sys_flag)),
            ("g", Value::Number(self.born_timestamp)),
            ("h", number(self.flag)),
            ("i", Value::Text(self.properties)),
            ("j", number(self.reconsume_times)),
            ("k", Value::Flag(self.is_unit_mode)),
        ]);
        // Java omits null fields
        fields.extend(self.max_reconsume_times.map(|times| ("l", number(times))));
        fields.push(("m", Value::Flag(self.is_batch)));
        fields
    }
}
