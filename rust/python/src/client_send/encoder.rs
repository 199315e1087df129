//! Encodes messages into requests.
use super::outgoing::{Body, Common, Outgoing, Texts, UniqueIds, now_ms};
use super::rows::{Most, batches_of};
use crate::arrow::Batches;
use crate::error::ArgumentError;
use crate::pairs::{Pairs, pairs};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use rmqfast_client::send::{self, BatchMessage, Properties};
use rmqfast_store::format::properties::MAX_LEN;
use std::sync::Arc;

/// Typical size of a message's properties and id in bytes.
const OWN_TEXTS: usize = 192;
/// Typical size of a message in a batch without its body, in bytes.
const ABOUT: usize = 160;

/// Property by which a message is marked as a reply.
const MESSAGE_TYPE: &str = "MSG_TYPE";
const REPLY: &str = "reply";

#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct MessageEncoder(Arc<Common>);

#[pymethods]
impl MessageEncoder {
    #[new]
    #[pyo3(signature = (group, ids, *, default_topic, default_topic_queue_nums, compress_over, instance_id, is_unit_mode))]
    fn new(
        group: String,
        ids: Py<UniqueIds>,
        default_topic: String,
        default_topic_queue_nums: i32,
        compress_over: usize,
        instance_id: Option<String>,
        is_unit_mode: bool,
    ) -> Self {
        let common =
            Common { group, default_topic, default_topic_queue_nums, compress_over, instance_id, is_unit_mode, ids };
        Self(Arc::new(common))
    }

    /// Encodes one message. `added` are properties that the producer adds.
    #[pyo3(signature = (message, topic, added=Vec::new(), sys_flag=0))]
    pub fn encode(
        &self,
        message: &Bound<'_, PyAny>,
        topic: PyBackedStr,
        added: Pairs,
        sys_flag: i32,
    ) -> PyResult<Outgoing> {
        let py = message.py();
        let fields = MessageFields::of(message)?;
        let now_ms = now_ms();
        let mut properties = String::with_capacity(OWN_TEXTS);
        let unique_id = self.write_properties(py, &fields, &added, now_ms, &mut properties)?;
        let (body, compression) = if fields.body.len() < self.0.compress_over {
            // borrowed, so that a small body is not copied
            (Body::Given(fields.body), 0)
        } else {
            // released because compressing may take a while
            let (compressed, sys_flag) = py.detach(|| send::compressed(&fields.body));
            (Body::Made(compressed), sys_flag)
        };
        Ok(Outgoing {
            common: self.0.clone(),
            reconsume_times: retry_number(&fields.pairs, &topic, "RECONSUME_TIME").unwrap_or(0),
            max_reconsume_times: retry_number(&fields.pairs, &topic, "MAX_RECONSUME_TIMES"),
            topic,
            texts: Texts::new(properties, &unique_id),
            body,
            sys_flag: sys_flag | compression,
            flag: fields.flag,
            // the same time as in the id
            born_timestamp: fields.born_timestamp.unwrap_or(now_ms),
            is_batch: false,
            // like Java's `MQClientAPIImpl.sendMessage`
            is_reply: fields.pairs.iter().any(|(name, value)| &**name == MESSAGE_TYPE && &**value == REPLY),
        })
    }

    /// Encodes several messages as a batch. Does not check that they have the same topic.
    fn encode_batch(
        &self,
        py: Python<'_>,
        messages: Vec<Bound<'_, PyAny>>,
        topic: PyBackedStr,
        wait_store: bool,
    ) -> PyResult<Outgoing> {
        let now_ms = now_ms();
        let (mut body, mut properties) = (Vec::new(), String::with_capacity(128));
        // an id has 32 characters, and a comma follows
        let mut unique_ids = String::with_capacity(33 * messages.len());
        for (index, message) in messages.iter().enumerate() {
            let fields = MessageFields::of(message)?;
            if index == 0 {
                // messages of a batch mostly have similar sizes
                body.reserve(messages.len() * (fields.body.len() + ABOUT));
            }
            properties.clear();
            let id = self.write_properties(py, &fields, &[], now_ms, &mut properties)?;
            let message = BatchMessage { flag: fields.flag, body: &fields.body, properties: &properties };
            if !send::write_batch_message(&message, &mut body) {
                return Err(ArgumentError::new_err(format!(
                    "message {index}: its properties are longer than {MAX_LEN} bytes"
                )));
            }
            if index > 0 {
                unique_ids.push(',');
            }
            unique_ids.push_str(&id);
        }
        Ok(Outgoing::batch(self.0.clone(), topic, body, &unique_ids, wait_store))
    }

    /// Encodes the rows of Arrow batches in their order. Each request has messages of one topic.
    #[pyo3(signature = (batches, topic, wrap, *, most_bytes, most_count))]
    fn encode_rows(
        &self,
        batches: Batches,
        topic: Option<&str>,
        wrap: &Bound<'_, PyAny>,
        most_bytes: usize,
        most_count: usize,
    ) -> PyResult<Vec<Outgoing>> {
        batches_of(&self.0, batches, topic, wrap, Most { bytes: most_bytes, count: most_count })
    }
}

impl MessageEncoder {
    /// Writes a message's properties with a unique id, and returns the id.
    fn write_properties(
        &self,
        py: Python<'_>,
        fields: &MessageFields,
        added: &[(PyBackedStr, PyBackedStr)],
        now_ms: i64,
        out: &mut String,
    ) -> PyResult<String> {
        let Common { instance_id, ids, .. } = &*self.0;
        let ids = ids.get().of_month(py, now_ms)?;
        let properties = Properties {
            tags: fields.tags.as_deref(),
            keys: fields.keys.as_deref(),
            wait_store: fields.wait_store,
            delay_level: fields.delay_level,
            pairs: &borrowed(&fields.pairs),
            added: &borrowed(added),
            unique_id: None,
        };
        let id = properties.write_with_id(instance_id.as_deref(), || ids.next(now_ms).text(), out);
        id.map_err(|e| ArgumentError::new_err(e.to_string()))
    }
}

/// The attributes of a `rmqfast.Message`.
struct MessageFields {
    body: PyBackedBytes,
    tags: Option<PyBackedStr>,
    keys: Option<PyBackedStr>,
    pairs: Pairs,
    /// Delay level; 0 delivers at once.
    delay_level: i32,
    /// Whether the broker answers only after its disk and slaves have the message.
    wait_store: bool,
    /// The application's 32-bit flag.
    flag: i32,
    /// Milliseconds since 1970; `None` for the current time.
    born_timestamp: Option<i64>,
}

impl MessageFields {
    fn of(message: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = message.py();
        Ok(Self {
            // borrowed, so that the body is copied only into the socket
            body: message.getattr(intern!(py, "body"))?.extract()?,
            tags: message.getattr(intern!(py, "tags"))?.extract()?,
            keys: message.getattr(intern!(py, "keys"))?.extract()?,
            pairs: pairs(&message.getattr(intern!(py, "properties"))?)?,
            delay_level: message.getattr(intern!(py, "delay_level"))?.extract()?,
            wait_store: message.getattr(intern!(py, "wait_store"))?.extract()?,
            flag: message.getattr(intern!(py, "flag"))?.extract()?,
            born_timestamp: message.getattr(intern!(py, "born_timestamp"))?.extract()?,
        })
    }
}

fn borrowed(pairs: &[(PyBackedStr, PyBackedStr)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (&**name, &**value)).collect()
}

/// Returns a property as a number, for messages to a retry topic; `None` for other topics.
fn retry_number(pairs: &[(PyBackedStr, PyBackedStr)], topic: &str, name: &str) -> Option<i32> {
    // Java's `DefaultMQProducerImpl.sendKernelImpl` sets these header fields for retry topics only
    if !topic.starts_with("%RETRY%") {
        return None;
    }
    pairs.iter().find(|(other, _)| &**other == name)?.1.parse().ok()
}
