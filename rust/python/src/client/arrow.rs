//! Converts messages that clients received to Arrow batches.
use super::fetched::Fetched;
use super::message_view::{MessageView, Source};
use crate::arrow::Batch;
use crate::error::{ArgumentError, client};
use crate::request::{columns, time_unit};
use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use pyo3::prelude::*;
use rmqfast_client::fetched::{Part, batches, batches_of_parts};
use rmqfast_store::scan::column::schema;
use rmqfast_store::scan::row::Row;
use rmqfast_store::scan::{Column, ScanRequest};
use std::sync::Arc;

type Views<'py> = Vec<PyRef<'py, MessageView>>;

/// Converts messages to one batch. If a message shows another value than its record has, the batch gets the value that
/// is shown.
#[pyfunction]
#[pyo3(signature = (messages, columns=None, *, microseconds=false))]
pub fn messages_to_arrow(
    py: Python<'_>,
    messages: Views<'_>,
    columns: Option<Vec<String>>,
    microseconds: bool,
) -> PyResult<Batch> {
    let request = request(columns, microseconds)?;
    // a body that does not match its CRC becomes null, where the `body` of a view raises
    let checks_bodies = messages.iter().any(|view| view.place().0.verify_crc);
    let request = ScanRequest { max_body_bytes: cap(&messages), checks_bodies, ..whole(request) };
    let runs = runs(&messages);
    // safe without the GIL, since `Source` owns its bytes and Python's bytes never change
    let built = py.detach(|| {
        let parts = runs.iter().map(|(source, rows)| Part { body: source.bytes.as_ref(), rows });
        let (batches, damage, _) = batches_of_parts(parts, &request)?;
        Ok((batches, damage))
    });
    let (mut batches, _) = built.map_err(client)?;
    // a string column holds less than 2 GiB, so more would need a second batch
    if batches.len() > 1 {
        let got = format!("{} messages of more", messages.len());
        let expected = format!("messages of {} MiB", ScanRequest::MAX_BATCH_BYTES >> 20);
        return Err(ArgumentError::new_err(format!("messages: expected {expected} in a batch at most, got {got}")));
    }
    let batch = batches.pop().unwrap_or_else(|| RecordBatch::new_empty(schema(&request.columns, request.time_unit)));
    apply_view(batch, &request.columns, &messages).map(Batch)
}

/// Converts a puller's answers to batches, in their order. All messages of a batch are from one broker.
#[pyfunction]
#[pyo3(signature = (fetched, columns=None, *, microseconds=false, max_body_bytes=ScanRequest::MAX_BODY_BYTES))]
pub fn fetched_to_arrow(
    py: Python<'_>,
    fetched: Vec<Py<Fetched>>,
    columns: Option<Vec<String>>,
    microseconds: bool,
    max_body_bytes: usize,
) -> PyResult<Vec<Batch>> {
    let checks_bodies = fetched.iter().any(|fetched| fetched.get().bodies().verify_crc);
    let request = ScanRequest { max_body_bytes, checks_bodies, ..request(columns, microseconds)? };
    let built = py.detach(|| {
        let mut out = Vec::new();
        // the broker's name is the same for a whole batch
        for run in fetched.chunk_by(|a, b| a.get().broker() == b.get().broker()) {
            let broker_name = Some(run[0].get().broker().to_owned());
            let request = ScanRequest { broker_name, ..request.clone() };
            out.extend(batches(run.iter().map(|fetched| fetched.get().inner()), &request)?.0);
        }
        Ok(out)
    });
    Ok(built.map_err(client)?.into_iter().map(Batch).collect())
}

fn request(names: Option<Vec<String>>, microseconds: bool) -> PyResult<ScanRequest> {
    Ok(ScanRequest { columns: columns(names)?, time_unit: time_unit(microseconds), ..ScanRequest::default() })
}

fn whole(request: ScanRequest) -> ScanRequest {
    // as large as possible, since the messages must fit into one batch
    let (batch_rows, batch_bytes) = (ScanRequest::MAX_BATCH_ROWS, ScanRequest::MAX_BATCH_BYTES);
    ScanRequest { batch_rows, batch_bytes, ..request }
}

fn cap(messages: &Views<'_>) -> usize {
    messages.iter().map(|view| view.place().0.max_body_bytes).max().unwrap_or(ScanRequest::MAX_BODY_BYTES)
}

/// Groups consecutive messages of the same answer.
fn runs(messages: &Views<'_>) -> Vec<(Arc<Source>, Vec<Row>)> {
    // messages of an answer mostly follow each other, and one call converts them all
    let runs = messages.chunk_by(|a, b| Arc::ptr_eq(a.place().0, b.place().0));
    runs.map(|run| (run[0].place().0.clone(), run.iter().map(|view| *view.place().1).collect())).collect()
}

/// Replaces the columns in which messages may show other values than their records: broker name, topic and reconsume
/// times.
fn apply_view(batch: RecordBatch, columns: &[Column], messages: &Views<'_>) -> PyResult<RecordBatch> {
    let mut arrays = batch.columns().to_vec();
    for (array, column) in arrays.iter_mut().zip(columns) {
        let changed: ArrayRef = match column {
            // messages of several brokers may be together here, and records do not name their broker
            Column::BrokerName => {
                Arc::new(messages.iter().map(|view| view.place().0.broker_name.as_deref()).collect::<StringArray>())
            }
            Column::Topic if messages.iter().any(|view| view.view_values().topic.is_some()) => {
                let topics: PyResult<Vec<_>> = messages.iter().map(|view| view.view_topic()).collect();
                Arc::new(StringArray::from_iter_values(topics?))
            }
            Column::ReconsumeTimes if messages.iter().any(|view| view.view_values().reconsume_times.is_some()) => {
                let times: PyResult<Vec<_>> = messages.iter().map(|view| view.view_reconsume_times()).collect();
                Arc::new(Int32Array::from(times?))
            }
            _ => continue,
        };
        *array = changed;
    }
    let batch = RecordBatch::try_new_with_options(
        batch.schema(),
        arrays,
        // a batch without columns has no other way to know its number of rows
        &arrow_array::RecordBatchOptions::new().with_row_count(Some(messages.len())),
    );
    batch.map_err(|error| ArgumentError::new_err(error.to_string()))
}
