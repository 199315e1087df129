//! Encodes messages into requests.
use super::common::Common;
use super::message_fields::{MessageFields, borrowed, number_of};
use super::outgoing::{Body, Outgoing, Texts};
use super::rows::{Most, batches_of};
use super::unique_ids::{UniqueIds, now_ms};
use crate::arrow::Batches;
use crate::error::ArgumentError;
use crate::pairs::Pairs;
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
        let unique_id = write_properties(&self.0, py, &fields, &added, now_ms, &mut properties)?;
        let (body, compression) = body_of(&self.0, py, fields.body);
        Ok(Outgoing {
            common: self.0.clone(),
            reconsume_times: number_of(&fields.pairs, &topic, "RECONSUME_TIME").unwrap_or(0),
            max_reconsume_times: number_of(&fields.pairs, &topic, "MAX_RECONSUME_TIMES"),
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
            let id = write_properties(&self.0, py, &fields, &Pairs::new(), now_ms, &mut properties)?;
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

/// Writes the properties and returns the unique id.
fn write_properties(
    common: &Common,
    py: Python<'_>,
    fields: &MessageFields,
    added: &Pairs,
    now_ms: i64,
    out: &mut String,
) -> PyResult<String> {
    let pairs = borrowed(&fields.pairs);
    let properties = Properties {
        tags: fields.tags.as_deref(),
        keys: fields.keys.as_deref(),
        wait_store: fields.wait_store,
        delay_level: fields.delay_level,
        pairs: &pairs,
        added: &borrowed(added),
        unique_id: None,
    };
    common.write(py, properties, now_ms, out)
}

fn body_of(common: &Common, py: Python<'_>, body: PyBackedBytes) -> (Body, i32) {
    // borrowed, so that a small body is not copied
    if body.len() < common.compress_over {
        return (Body::Given(body), 0);
    }
    // released because compressing may take a while
    let (made, sys_flag) = py.detach(|| send::compressed(&body));
    (Body::Made(made), sys_flag)
}
