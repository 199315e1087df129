//! Decodes the body of an answer into messages.
use super::message_view::{Bytes, MessageView, SeenAs, Source};
use crate::error::client;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyList;
use rmqfast_client::pull_body::{self, Tags};
use rmqfast_store::scan::ScanRequest;
use std::collections::HashSet;
use std::sync::Arc;

/// Returns the messages of the answer to a pull, in their order.
#[pyfunction]
#[pyo3(signature = (body, *, broker_name, topic=None, tags=None, bounds=None, verify_crc=false,
                    max_body_bytes=ScanRequest::MAX_BODY_BYTES))]
#[allow(clippy::too_many_arguments, reason = "the keywords of a Python function")]
pub fn decode_pull<'py>(
    py: Python<'py>,
    body: PyBackedBytes,
    broker_name: Option<String>,
    topic: Option<&str>,
    tags: Option<HashSet<String>>,
    bounds: Option<(i64, i64)>,
    verify_crc: bool,
    max_body_bytes: usize,
) -> PyResult<Bound<'py, PyList>> {
    // like Java's `PullAPIWrapper`: without tags to compare, the broker's filter is enough
    let tags = tags.filter(|tags| !tags.is_empty()).map(to_tags);
    let rows = pull_body::messages(&body, tags.as_ref()).map_err(client)?;
    let seen_as = SeenAs { topic: topic.map(Into::into), reconsume_times: None };
    // all views share the answer's bytes; a value is copied when it is read
    let source = Arc::new(Source { bytes: Bytes::Python(body), broker_name, bounds, max_body_bytes, verify_crc });
    let views = rows.into_iter().map(|row| MessageView::new(source.clone(), row, seen_as.clone()));
    let views: PyResult<Vec<_>> = views.map(|view| Bound::new(py, view)).collect();
    PyList::new(py, views?)
}

pub fn to_tags(tags: HashSet<String>) -> Tags {
    tags.into_iter().map(String::into_bytes).collect()
}
