//! Checks names of topics and groups, and adds or removes namespaces.
use crate::error::ArgumentError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rmqfast_client::names;
use rmqfast_store::format::names::{Rule, is_legal};

/// Returns the reason why a name is invalid for a topic or a group; `None` if it is valid.
#[pyfunction]
pub fn name_problem(rule: &str, name: &Bound<'_, PyString>) -> PyResult<Option<String>> {
    // a string with surrogates is not valid UTF-8, so it is checked with replacement characters
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

/// Whether all characters of a name are allowed in topics and groups.
#[pyfunction]
pub fn is_legal_name(name: &Bound<'_, PyString>) -> bool {
    is_legal(name.to_string_lossy().as_bytes())
}

/// Adds a namespace to a name.
#[pyfunction]
pub fn wrap_namespace(namespace: &str, resource: &str) -> String {
    names::wrap(namespace, resource)
}

/// Removes the given namespace from a name.
#[pyfunction]
pub fn unwrap_namespace(namespace: &str, resource: &str) -> String {
    names::unwrap(namespace, resource)
}

/// Removes any namespace from a name.
#[pyfunction]
pub fn without_namespace(resource: &str) -> String {
    names::without_namespace(resource)
}
