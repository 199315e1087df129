//! Rows of Arrow as batches to be sent.
use super::common::Common;
use super::outgoing::Outgoing;
use super::unique_ids::now_ms;
use crate::error::{ArgumentError, to_python};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader, StringArray};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3_arrow::input::AnyRecordBatch;
use rmqfast_client::send::{BatchMessage, Properties, write_batch_message};
use rmqfast_store::store::append::{Columns, Row, Rows};
use std::sync::Arc;

/// How large a batch may be.
#[derive(Clone, Copy)]
pub struct Most {
    /// Bytes of its body.
    pub bytes: usize,
    /// Messages.
    pub count: usize,
}

/// The batches that hold all rows, in their order; of one topic each. `topic` is that of rows without such a column, `wrap` is
/// what stands before topics.
pub fn batches_of(
    common: &Arc<Common>,
    source: AnyRecordBatch,
    topic: Option<&str>,
    wrap: &Bound<'_, PyAny>,
    most: Most,
) -> PyResult<Vec<Outgoing>> {
    let mut batches = Batches { common, wrap, most, done: Vec::new(), open: None, row: 0 };
    let reader: Box<dyn RecordBatchReader + Send> = source.into_reader()?;
    for batch in reader {
        let batch = batch.map_err(|e| ArgumentError::new_err(format!("a stream that cannot be read: {e}")))?;
        let columns = Columns::new(&with_topic(batch, topic)?).map_err(to_python)?;
        for index in 0..columns.len() {
            batches.add(&columns, &columns.row(index))?;
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

/// A batch that takes more rows.
struct Open {
    topic: String,
    wrapped: PyBackedStr,
    body: Vec<u8>,
    ids: String,
    count: usize,
}

impl Batches<'_, '_> {
    fn add(&mut self, columns: &Columns, row: &Row<'_>) -> PyResult<()> {
        let topic = self.text("topic", row.topic)?.ok_or_else(|| self.wrong("a topic"))?;
        let body = row.body.filter(|body| !body.is_empty()).ok_or_else(|| self.wrong("a body of one byte or more"))?;
        let flag = i32::try_from(row.flag).map_err(|_| self.wrong("a flag of 32 bits"))?;
        let (mut properties, mut pairs) = (String::with_capacity(128), Vec::new());
        for (name, value) in row.pairs.clone().map(|index| columns.pair(index)) {
            if let (Some(name), Some(value)) = (self.text("properties", Some(name))?, self.text("properties", value)?) {
                pairs.push((name, value));
            }
        }
        // Java's `MessageBatch.generateFromList` refuses it with these words
        if pairs.iter().any(|(name, _)| *name == "DELAY") {
            return Err(self.wrong("no DELAY: TimeDelayLevel is not supported for batching"));
        }
        let said = Properties {
            tags: self.text("tags", row.tags)?,
            keys: self.text("keys", row.keys)?,
            // a batch waits as a whole, and says so itself
            wait_store: true,
            delay_level: 0,
            pairs: &pairs,
            added: &[],
            unique_id: None,
        };
        let id = self.common.write(self.wrap.py(), said, now_ms(), &mut properties)?;
        let message = BatchMessage { flag, body, properties: &properties };
        // 22 bytes are the fixed part of a message in a batch
        self.make_room(topic, body.len() + properties.len() + 22)?;
        let Some(open) = &mut self.open else { return Ok(()) };
        if !write_batch_message(&message, &mut open.body) {
            return Err(self.wrong("properties of 32767 bytes at most"));
        }
        if open.count > 0 {
            open.ids.push(',');
        }
        open.ids.push_str(&id);
        open.count += 1;
        Ok(())
    }

    /// Opens a batch that has room for a message.
    fn make_room(&mut self, topic: &str, bytes: usize) -> PyResult<()> {
        let Most { bytes: most_bytes, count: most_count } = self.most;
        if bytes > most_bytes {
            return Err(self.wrong(&format!("{most_bytes} bytes at most, with properties; it has {bytes}")));
        }
        let fits =
            |open: &Open| open.topic == topic && open.count < most_count && open.body.len() + bytes <= most_bytes;
        if self.open.as_ref().is_some_and(fits) {
            return Ok(());
        }
        self.close();
        // once for a batch: the namespace is added by Python code
        let wrapped = self.wrap.call1((topic,))?.extract()?;
        self.open = Some(Open { topic: topic.to_owned(), wrapped, body: Vec::new(), ids: String::new(), count: 0 });
        Ok(())
    }

    fn close(&mut self) {
        let done =
            self.open.take().map(|open| Outgoing::batch(self.common.clone(), open.wrapped, open.body, &open.ids, true));
        self.done.extend(done);
    }

    fn text<'a>(&self, what: &str, bytes: Option<&'a [u8]>) -> PyResult<Option<&'a str>> {
        let text = bytes.map(std::str::from_utf8).transpose();
        text.map_err(|_| self.wrong(&format!("UTF-8 in {what}")))
    }

    fn wrong(&self, expected: &str) -> PyErr {
        ArgumentError::new_err(format!("row {}: expected {expected}", self.row))
    }
}

/// Rows with a column `topic`.
fn with_topic(batch: RecordBatch, topic: Option<&str>) -> PyResult<RecordBatch> {
    // a column wins over the argument
    let Some(topic) = topic.filter(|_| batch.column_by_name("topic").is_none()) else { return Ok(batch) };
    let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("topic", DataType::Utf8, false)));
    let mut columns = batch.columns().to_vec();
    let named: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(topic, batch.num_rows())));
    columns.push(named);
    let made = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    made.map_err(|e| ArgumentError::new_err(e.to_string()))
}
