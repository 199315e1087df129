#![allow(unsafe_code, reason = "what Arrow's C data interface hands over are pointers")]
//! Arrow data across the border, by the PyCapsule interface: a capsule holds a structure of Arrow's C data interface.
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, Schema};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::CStr;
use std::ptr::NonNull;

const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";
const STREAM: &CStr = c"arrow_array_stream";

/// Batches that are taken one by one, without the GIL.
pub type Reader = Box<dyn RecordBatchReader + Send>;

/// A batch of rows, for every library that knows the interface.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Batch(pub RecordBatch);

#[pymethods]
impl Batch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.0.schema_ref())
    }

    /// Whoever asks for another schema converts by himself, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let (array, schema) = to_ffi(&StructArray::from(self.0.clone()).into_data()).map_err(unreadable)?;
        let schema = schema.with_metadata(self.0.schema_ref().metadata()).map_err(unreadable)?;
        Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
    }
}

/// A capsule that gives all batches of a reader, once.
pub fn stream_capsule(py: Python<'_>, reader: Reader) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// A capsule of a schema.
pub fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(schema).map_err(unreadable)?, SCHEMA)
}

/// Rows from Python: a batch, or a stream of them.
pub struct Batches(Reader);

impl Batches {
    /// Its batches, one after the other.
    pub fn into_reader(self) -> Reader {
        self.0
    }
}

impl FromPyObject<'_, '_> for Batches {
    type Error = PyErr;

    fn extract(source: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if source.hasattr("__arrow_c_stream__")? {
            let capsule = source.call_method0("__arrow_c_stream__")?;
            let stream = pointer(&capsule, STREAM)?.cast();
            // SAFETY: by its name the capsule holds such a structure. It is moved out, and what stays behind is marked released.
            let reader = unsafe { ArrowArrayStreamReader::from_raw(stream.as_ptr()) }.map_err(unreadable)?;
            return Ok(Self(Box::new(reader)));
        }
        let batch = source.extract::<OneBatch>()?.0;
        let schema = batch.schema();
        Ok(Self(Box::new(RecordBatchIterator::new([Ok(batch)], schema))))
    }
}

/// One batch from Python.
pub struct OneBatch(pub RecordBatch);

impl FromPyObject<'_, '_> for OneBatch {
    type Error = PyErr;

    fn extract(source: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if !source.hasattr("__arrow_c_array__")? {
            let got = source.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "expected rows of Arrow, an object with __arrow_c_array__ or __arrow_c_stream__, got {got}"
            )));
        }
        let capsules = source.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = capsules.cast::<PyTuple>()?.extract()?;
        let (schema, array) = (pointer(&schema, SCHEMA)?, pointer(&array, ARRAY)?);
        // SAFETY: by their names the capsules hold such structures. They are moved out, and what stays behind is marked released.
        let (schema, array) = unsafe {
            (FFI_ArrowSchema::from_raw(schema.as_ptr().cast()), FFI_ArrowArray::from_raw(array.as_ptr().cast()))
        };
        if array.is_released() {
            return Err(PyValueError::new_err(
                "expected rows of Arrow, got an array that is released: it was taken before",
            ));
        }
        // SAFETY: the interface says that the array is as the schema has it; both came from one call.
        let data = unsafe { from_ffi(array, &schema) };
        let data = data.map_err(unreadable)?;
        if !matches!(data.data_type(), arrow_schema::DataType::Struct(_)) {
            let text = format!("expected rows of Arrow, a struct array, got one of {}", data.data_type());
            return Err(PyTypeError::new_err(text));
        }
        if data.null_count() > 0 {
            return Err(PyValueError::new_err(format!(
                "expected rows of Arrow, got {} that are null",
                data.null_count()
            )));
        }
        Ok(Self(RecordBatch::from(StructArray::from(data))))
    }
}

fn pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<std::ffi::c_void>> {
    capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))
}

fn unreadable(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("arrow: {error}"))
}
