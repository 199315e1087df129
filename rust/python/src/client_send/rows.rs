//! Encodes Arrow rows as batches of messages.
use super::outgoing::{Common, Outgoing, now_ms};
use crate::arrow;
use crate::error::{ArgumentError, to_python};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use rmqfast_client::send::{Batch, BatchOptions, BatchRow, Unsendable};
use rmqfast_store::store::append::{Columns, Row, Rows};
use std::sync::Arc;

/// Limits of a batch of messages.
#[derive(Clone, Copy)]
pub struct Most {
    pub bytes: usize,
    pub count: usize,
}

/// Encodes all rows as batches, in the order of the rows. A batch has messages of one topic only. `topic` is used if
/// the rows have no column `topic`. `wrap` adds the namespace to a topic.
pub fn batches_of(
    common: &Arc<Common>,
    source: arrow::Batches,
    topic: Option<&str>,
    wrap: &Bound<'_, PyAny>,
    most: Most,
) -> PyResult<Vec<Outgoing>> {
    let mut batches = Batches { common, wrap, most, done: Vec::new(), open: None, row: 0 };
    for batch in source.into_reader() {
        let batch = batch.map_err(|e| ArgumentError::new_err(format!("a stream that cannot be read: {e}")))?;
        let columns = Columns::new(&with_topic(batch, topic)?).map_err(to_python)?;
        for index in 0..columns.len() {
            batches.add(&columns, &columns.row(index))?;
            // counted over the whole stream, for errors
            batches.row += 1;
        }
    }
    batches.close();
    Ok(batches.done)
}

struct Batches<'a, 'py> {
    common: &'a Arc<Common>,
    wrap: &'a Bound<'py, PyAny>,
    most: Most,
    done: Vec<Outgoing>,
    open: Option<Open>,
    row: usize,
}

/// A batch to which more rows can be added.
struct Open {
    topic: String,
    wrapped: PyBackedStr,
    batch: Batch,
}

impl Batches<'_, '_> {
    fn add(&mut self, columns: &Columns, row: &Row<'_>) -> PyResult<()> {
        let topic = row.topic.map(std::str::from_utf8).transpose().map_err(|_| self.wrong("UTF-8 in topic"))?;
        let topic = topic.ok_or_else(|| self.wrong("a topic"))?;
        let pairs: Vec<_> = row.pairs.clone().map(|index| columns.pair(index)).collect();
        let row = BatchRow { body: row.body, tags: row.tags, keys: row.keys, pairs: &pairs, flag: row.flag };
        let now_ms = now_ms();
        let options = BatchOptions {
            most_bytes: self.most.bytes,
            most_rows: self.most.count,
            instance_id: self.common.instance_id.as_deref(),
            ids: self.common.ids.get().of_month(self.wrap.py(), now_ms)?,
        };
        loop {
            if self.open.as_ref().is_none_or(|open| open.topic != topic) {
                self.close();
                // called once for a batch, since it is Python code
                let wrapped = self.wrap.call1((topic,))?.extract()?;
                self.open = Some(Open { topic: topic.to_owned(), wrapped, batch: Batch::default() });
            }
            let Some(open) = &mut self.open else { return Ok(()) };
            let added = open.batch.add(&row, &options, now_ms).map_err(|unsendable| match unsendable {
                Unsendable::Expected(what) => wrong(self.row, &what),
                Unsendable::Unstorable(_) => ArgumentError::new_err(unsendable.to_string()),
            })?;
            if added {
                return Ok(());
            }
            self.close();
        }
    }

    fn close(&mut self) {
        let done = self.open.take().filter(|open| open.batch.rows > 0).map(|Open { wrapped, batch, .. }| {
            Outgoing::batch(self.common.clone(), wrapped, batch.body, &batch.ids, true)
        });
        self.done.extend(done);
    }

    fn wrong(&self, expected: &str) -> PyErr {
        wrong(self.row, expected)
    }
}

fn wrong(row: usize, expected: &str) -> PyErr {
    ArgumentError::new_err(format!("row {row}: expected {expected}"))
}

/// Adds the column `topic` if the batch does not have it.
fn with_topic(batch: RecordBatch, topic: Option<&str>) -> PyResult<RecordBatch> {
    // a column takes precedence over the argument
    let Some(topic) = topic.filter(|_| batch.column_by_name("topic").is_none()) else { return Ok(batch) };
    let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("topic", DataType::Utf8, false)));
    let mut columns = batch.columns().to_vec();
    let named: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(topic, batch.num_rows())));
    columns.push(named);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|e| ArgumentError::new_err(e.to_string()))
}
