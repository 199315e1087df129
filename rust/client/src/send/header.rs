//! The header of a send, with the short names of its second version.
//!
//! Source: `SendMessageRequestHeaderV2`, `DefaultMQProducerImpl.sendKernelImpl`.
use rmqfast_remoting::Value;

/// SEND_MESSAGE_V2.
pub const CODE: i32 = 310;
/// SEND_BATCH_MESSAGE.
pub const BATCH_CODE: i32 = 320;
/// SEND_REPLY_MESSAGE_V2.
pub const REPLY_CODE: i32 = 325;

/// The fields of a send.
#[derive(Clone, Copy, Debug)]
pub struct SendHeader<'a> {
    pub producer_group: &'a str,
    pub topic: &'a str,
    /// The topic after whose settings a broker makes one that is missing, as `TBW102`.
    pub default_topic: &'a str,
    pub default_topic_queue_nums: i32,
    pub queue_id: i32,
    /// Compression and kind of transaction.
    pub sys_flag: i32,
    /// Milliseconds.
    pub born_timestamp: i64,
    /// The user's 32 bits.
    pub flag: i32,
    pub properties: &'a str,
    /// Failed deliveries; of retry topics.
    pub reconsume_times: i32,
    /// Their limit; of retry topics.
    pub max_reconsume_times: Option<i32>,
    /// Whether the producer is of a unit.
    pub is_unit_mode: bool,
    /// Whether the body is a batch.
    pub is_batch: bool,
    /// Whether it answers a request: then the broker hands it to whoever asked.
    pub is_reply: bool,
}

impl<'a> SendHeader<'a> {
    /// The request code.
    ///
    /// Source: `MQClientAPIImpl.sendMessage`.
    pub fn code(&self) -> i32 {
        match (self.is_batch, self.is_reply) {
            // a batch has the short names as well
            (true, _) => BATCH_CODE,
            (false, true) => REPLY_CODE,
            (false, false) => CODE,
        }
    }

    /// The fields as they are written.
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
        // Java writes no field that is null
        fields.extend(self.max_reconsume_times.map(|times| ("l", number(times))));
        fields.push(("m", Value::Flag(self.is_batch)));
        fields
    }
}
