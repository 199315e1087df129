//! Converts rows to Python dictionaries, for functions that must work without pyarrow.
use crate::error::to_python;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::batch::batches_of;
use rmqfast_store::store::Damage;

/// Damaged bytes as a tuple: `(offset, length, reason, file, broker_name)`.
pub type PyDamage = (u64, u64, String, String, Option<String>);

pub fn from_damage(damage: &Damage) -> PyDamage {
    (damage.offset, damage.length, damage.reason.clone(), damage.file.to_string_lossy().into_owned(), None)
}

/// The broker's name that rows show, and the maximum size of a decompressed body in bytes.
#[derive(FromPyObject)]
pub struct RowOptions(pub Option<String>, pub usize);

/// Converts records to dictionaries with column names as keys. A body that does not decompress is returned as damage.
pub fn rows<'py, 'a>(
    py: Python<'py>,
    records: impl IntoIterator<Item = &'a [u8]>,
    options: RowOptions,
) -> PyResult<(Vec<Bound<'py, PyDict>>, Vec<Damage>)> {
    let RowOptions(broker_name, max_body_bytes) = options;
    let request = ScanRequest { broker_name, max_body_bytes, ..ScanRequest::default() };
    let (batches, damage) = batches_of(records, &request).map_err(to_python)?;
    let mut rows = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            rows.push(dictionary(py, batch, row)?);
        }
    }
    Ok((rows, damage))
}

fn dictionary<'py>(py: Python<'py>, batch: &RecordBatch, row: usize) -> PyResult<Bound<'py, PyDict>> {
    let dictionary = PyDict::new(py);
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        dictionary.set_item(field.name(), value(py, column, row)?)?;
    }
    Ok(dictionary)
}

fn value<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
        DataType::Binary => PyBytes::new(py, column.as_binary::<i32>().value(row)).into_any(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any(),
        // `ScanRequest::default` selects milliseconds, which Python gets as numbers
        DataType::Timestamp(..) => {
            column.as_primitive::<TimestampMillisecondType>().value(row).into_pyobject(py)?.into_any()
        }
        // the only column left is `properties`
        _ => map(py, column, row)?.into_any(),
    })
}

fn map<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyDict>> {
    let entries = column.as_map().value(row);
    let (names, values) = (entries.column(0).as_string::<i32>(), entries.column(1).as_string::<i32>());
    let map = PyDict::new(py);
    for (name, value) in names.iter().zip(values.iter()) {
        map.set_item(name, value)?;
    }
    Ok(map)
}
