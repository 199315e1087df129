//! What the driver fixes of a read of a topic, before its tasks begin.
use super::request::PyTopicRead;
use super::warnings::log;
use crate::error::spark;
use crate::signals;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rmqfast_spark::topic_piece::{Range, TopicPiece};

const LOGGER: &str = "rmqfast.spark";

/// Looks whether a read can be.
#[pyfunction]
pub fn check_topic(py: Python<'_>, read: PyTopicRead<'_>) -> PyResult<()> {
    let read = read.into_read()?;
    let warnings = py.detach(|| read.check(&mut signals::waiting())).map_err(spark)?;
    log(py, LOGGER, warnings)
}

/// The pieces of a read.
#[pyfunction]
pub fn plan_topic<'py>(py: Python<'py>, read: PyTopicRead<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let read = read.into_read()?;
    let (pieces, warnings) = py.detach(|| read.plan(&mut signals::waiting())).map_err(spark)?;
    // after the GIL is back: a handler of `logging` is Python code
    log(py, LOGGER, warnings)?;
    Ok(pieces.iter().map(|piece| PyBytes::new(py, &piece.to_bytes())).collect())
}

/// The address and the ranges of a piece.
#[pyfunction]
pub fn read_piece(piece: &[u8]) -> PyResult<(Option<String>, Vec<Range>)> {
    let TopicPiece { address, ranges, .. } = TopicPiece::of_bytes(piece).map_err(spark)?;
    Ok((address, ranges))
}
