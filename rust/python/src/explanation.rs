//! Converts the explanation of a scan.
use crate::request::from_piece;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_store::scan::explanation::FilterUse;
use rmqfast_store::scan::{Explanation, PieceReads, Plan};

/// Reason for the way of a piece that an earlier plan has fixed.
const FIXED: &str = "as planned when the scan was divided or pickled";

/// Returns an explanation as a dict. `plan` is `None` if an earlier plan has fixed the pieces.
pub fn explanation_dict<'py>(
    py: Python<'py>,
    explanation: &Explanation,
    plan: Option<&Plan>,
) -> PyResult<Bound<'py, PyDict>> {
    let piece = |reads: &PieceReads| {
        let PieceReads { piece, log, queues, files } = reads;
        let (way, begin, end, _) = from_piece(piece);
        let reason = plan.map_or(FIXED, |plan| plan.reason_of(piece)).to_owned();
        (way, reason, (begin, end), (log.bytes, log.ranges), (queues.bytes, queues.ranges), *files)
    };
    let filter = |used: &FilterUse| (used.name, used.narrows_by);
    let dict = PyDict::new(py);
    dict.set_item("pieces", explanation.pieces.iter().map(piece).collect::<Vec<_>>())?;
    dict.set_item("filters", explanation.filters.iter().map(filter).collect::<Vec<_>>())?;
    dict.set_item("before", explanation.before)?;
    dict.set_item("behind", explanation.behind)?;
    dict.set_item("unwritten", explanation.unwritten)?;
    dict.set_item("other_queues", explanation.other_queues)?;
    dict.set_item("expected", plan.filter(|plan| plan.listed > 0).map(|plan| plan.expected))?;
    Ok(dict)
}
