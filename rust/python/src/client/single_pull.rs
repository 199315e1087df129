//! Builds the header of a single pull request, and parses its answer.
use super::decode::to_tags;
use super::fetched::{Bodies, Fetched};
use super::message_queue::PulledQueue;
use super::puller::subscription;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_client::puller::{self, Answer, Body, PullHeader, PullerOptions, texts};
use rmqfast_store::scan::ScanRequest;
use std::collections::{HashMap, HashSet};

/// Returns the header fields of a pull that contains its own filter expression.
#[pyfunction]
#[pyo3(signature = (consumer_group, queue, offset, max_messages, *, suspend_millis=0, expression="*",
                    expression_type="TAG", sub_version=0))]
#[allow(clippy::too_many_arguments, reason = "the keywords of a Python function")]
pub fn pull_fields<'py>(
    py: Python<'py>,
    consumer_group: &str,
    queue: PulledQueue,
    offset: i64,
    max_messages: i64,
    suspend_millis: i64,
    expression: &str,
    expression_type: &str,
    sub_version: i64,
) -> PyResult<Bound<'py, PyDict>> {
    let header = PullHeader {
        consumer_group,
        queue: &queue.0,
        offset,
        max_messages,
        // like `pull()` of Java's pull consumer, whose heartbeat does not have the expression
        sys_flag: PullerOptions::SUBSCRIPTION,
        commit_offset: 0,
        suspend_millis,
        subscription: &subscription(expression, expression_type, sub_version, None),
    };
    let fields = PyDict::new(py);
    texts(&header.fields()).into_iter().try_for_each(|(name, value)| fields.set_item(name, value))?;
    Ok(fields)
}

/// Parses the answer to a pull, and returns its messages and offsets as a `Fetched`.
#[pyfunction]
#[pyo3(signature = (queue, offset, *, code, remark, ext_fields, body, tags=None, verify_crc=false))]
#[allow(clippy::too_many_arguments, reason = "the keywords of a Python function")]
pub fn read_pull(
    queue: PulledQueue,
    offset: i64,
    code: i32,
    remark: Option<&str>,
    ext_fields: Option<HashMap<String, String>>,
    body: &[u8],
    tags: Option<HashSet<String>>,
    verify_crc: bool,
) -> Fetched {
    let fields = ext_fields.unwrap_or_default();
    let field = |name: &str| fields.get(name).map(String::as_str);
    // without a memory pool, since single pulls are rare
    let body = Body::copy(body, None);
    let answer = Answer::read(code, remark.unwrap_or_default(), field, body, &queue.0, offset, true);
    let tags = tags.filter(|tags| !tags.is_empty()).map(|tags| to_tags(tags).into());
    let bodies = Bodies { max_bytes: ScanRequest::MAX_BODY_BYTES, verify_crc };
    Fetched::new(puller::PulledAnswer::new(queue.0.into(), offset, answer, tags), bodies)
}
