//! Exposes how filters and predicates of engines narrow a request.
use crate::error::to_python;
use crate::request::PyScanRequest;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};
use rmqfast_store::scan::predicate::Predicate;
use rmqfast_store::scan::push_down::{self, Filter, Limits, Literal};
use rmqfast_store::scan::substrait::parse_predicate;

/// Selects messages of a store, by a request and by the filters of an engine.
#[pyclass(module = "rmqfast._native._rmqfast")]
pub struct Selection {
    selection: push_down::Selection,
}

pub type PyFilter<'py> = (String, String, Vec<Bound<'py, PyAny>>);

#[pymethods]
impl Selection {
    #[new]
    /// `broker_names` are those of the stores; `None` for one store, whose name the request has.
    #[pyo3(signature = (request, *, only_topic=None, broker_names=None))]
    fn new(request: PyScanRequest, only_topic: Option<String>, broker_names: Option<Vec<String>>) -> PyResult<Self> {
        let selection = push_down::Selection::of(&request.into_request()?);
        let broker_names = broker_names.or(selection.broker_names);
        Ok(Self { selection: push_down::Selection { only_topic, broker_names, ..selection } })
    }

    fn take(&mut self, filters: Vec<PyFilter<'_>>) -> PyResult<Vec<bool>> {
        Ok(self.selection.take(&self::filters(filters)?))
    }

    #[getter]
    fn has_offsets_by_queue(&self) -> bool {
        self.selection.has_offsets_by_queue
    }

    #[getter]
    fn only_topic(&self) -> Option<&str> {
        self.selection.only_topic.as_deref()
    }

    /// Returns the brokers whose stores may have matching messages; `None` if the store has no name.
    #[getter]
    fn broker_names(&self) -> Option<Vec<String>> {
        self.selection.broker_names.clone()
    }

    #[getter]
    fn tags(&self) -> Option<Vec<String>> {
        self.selection.tags.clone()
    }

    #[getter]
    fn queue_ids(&self) -> Option<Vec<i32>> {
        self.selection.queue_ids.clone()
    }

    #[getter]
    fn offsets(&self) -> Limits {
        self.selection.offsets
    }

    #[getter]
    fn times(&self) -> Limits {
        self.selection.times
    }

    #[getter]
    fn is_empty(&self) -> bool {
        self.selection.is_empty
    }
}

pub fn filters(asked: Vec<PyFilter<'_>>) -> PyResult<Vec<Filter>> {
    let filter = |(kind, column, values): PyFilter<'_>| {
        let values = values.iter().map(literal).collect::<PyResult<_>>()?;
        Ok(Filter { kind, column, values })
    };
    asked.into_iter().map(filter).collect()
}

/// A predicate: bytes of Substrait, or a tree of tuples. A leaf is a filter `(kind, column, values)`, a node is
/// `("all", parts)` or `("any", parts)`, and `None` is a condition that does not narrow a scan.
pub struct PyPredicate(Predicate);

impl FromPyObject<'_, '_> for PyPredicate {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Ok(Self(parse_predicate(bytes.as_bytes()).map_err(to_python)?));
        }
        Ok(Self(predicate(&given, MAX_DEPTH)?))
    }
}

/// Returns the filters that a predicate surely implies, in the form of [`PyFilter`].
#[pyfunction]
pub fn implied_filters(predicate: PyPredicate) -> Vec<(String, String, Vec<Option<PyLiteral>>)> {
    let value = |value: Option<Literal>| value.map(PyLiteral::of);
    let filters = predicate.0.implied_filters().into_iter();
    filters.map(|filter| (filter.kind, filter.column, filter.values.into_iter().map(value).collect())).collect()
}

/// A value of a filter, as [`literal`] reads it.
#[derive(IntoPyObject)]
pub enum PyLiteral {
    Text(String),
    Number(i64),
    Micros((i64,)),
    Other(()),
}

impl PyLiteral {
    fn of(literal: Literal) -> Self {
        match literal {
            Literal::Text(text) => Self::Text(text),
            Literal::Number(number) => Self::Number(number),
            Literal::Micros(micros) => Self::Micros((micros,)),
            Literal::Other => Self::Other(()),
        }
    }
}

// what is deeper is not understood, so that recursion is bounded
const MAX_DEPTH: usize = 64;

fn predicate(given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Predicate> {
    if given.is_none() || depth == 0 {
        return Ok(Predicate::Other);
    }
    if let Ok(filter) = given.extract::<PyFilter<'_>>() {
        let filter = filters(vec![filter])?.pop();
        return Ok(filter.map_or(Predicate::Other, Predicate::Filter));
    }
    let (node, parts): (String, Vec<Bound<'_, PyAny>>) = given.extract()?;
    let parts = parts.iter().map(|part| predicate(part, depth - 1)).collect::<PyResult<_>>()?;
    Ok(match node.as_str() {
        "all" => Predicate::All(parts),
        "any" => Predicate::Any(parts),
        _ => Predicate::Other,
    })
}

/// Converts a value of a filter: `None`, a string, a whole number, or a time as `(microseconds,)`.
fn literal(value: &Bound<'_, PyAny>) -> PyResult<Option<Literal>> {
    if value.is_none() {
        return Ok(None);
    }
    let literal = if value.is_instance_of::<PyString>() {
        Literal::Text(value.extract()?)
    } else if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        // `bool` is a subclass of `int` in Python
        value.extract().map_or(Literal::Other, Literal::Number)
    } else {
        // a time is a tuple, to distinguish it from a number; an unknown type leaves the filter to Spark
        value.extract().map_or(Literal::Other, |(micros,): (i64,)| Literal::Micros(micros))
    };
    Ok(Some(literal))
}
