//! Names of topics and groups.
use crate::error::ArgumentError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rmqfast_client::names;
use rmqfast_store::format::names::{Rule, is_legal};

/// Why a topic or a group cannot have a name.
#[pyfunction]
pub fn name_problem(rule: &str, name: &Bound<'_, PyString>) -> PyResult<Option<String>> {
    // what is no text at all is shown as far as it is one
    let name = name.to_string_lossy();
    let checked = match rule {
        "group" => Rule::Group.check(&name),
        "producer group" => names::check_producer_group(&name),
        "consumer group" => names::check_consumer_group(&name),
        "topic" => Rule::Topic.check(&name),
        "sent topic" => names::check_sent_topic(&name),
        "batch topic" => names::check_sendable_topic(&name),
        "new topic" => Rule::NewTopic.check(&name),
        "named topic" => Rule::NamedTopic.check(&name),
        _ => return Err(ArgumentError::new_err(format!("rule: expected one for names, got {rule:?}"))),
    };
    Ok(checked.err())
}

/// Whether a name has only characters that topics and groups may have.
#[pyfunction]
pub fn is_legal_name(name: &Bound<'_, PyString>) -> bool {
    is_legal(name.to_string_lossy().as_bytes())
}

/// A name with its namespace.
#[pyfunction]
pub fn wrap_namespace(namespace: &str, resource: &str) -> String {
    names::wrap(namespace, resource)
}

/// A name without a namespace.
#[pyfunction]
pub fn unwrap_namespace(namespace: &str, resource: &str) -> String {
    names::unwrap(namespace, resource)
}

/// A name without its namespace.
#[pyfunction]
pub fn without_namespace(resource: &str) -> String {
    names::without_namespace(resource)
}
