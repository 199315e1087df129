#![allow(unsafe_code, reason = "what Arrow's C data interface hands over are pointers")]
//! Exchanges Arrow data with Python libraries by the PyCapsule interface, whose capsules hold structs of Arrow's C data
//! interface.
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, from_ffi_and_data_type, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader, StructArray};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Fields, Schema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::critical_section::{with_critical_section, with_critical_section2};
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::{CStr, c_char, c_int};
use std::ptr::NonNull;
use std::sync::Arc;

const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";
const STREAM: &CStr = c"arrow_array_stream";

/// A reader of batches that can be used without the GIL.
pub type Reader = Box<dyn RecordBatchReader + Send>;

/// A batch of rows that every library with the PyCapsule interface can read.
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

    /// Returns the capsules of the schema and of the rows. Ignores `requested_schema`, as the interface allows: whoever
    /// reads the capsules converts the rows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let (array, schema) = to_ffi(&StructArray::from(self.0.clone()).into_data()).map_err(unreadable)?;
        // a struct array has no schema metadata, so it is added here
        let schema = schema.with_metadata(self.0.schema_ref().metadata()).map_err(unreadable)?;
        Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
    }
}

/// Returns a capsule from which all batches of a reader can be read once.
pub fn stream_capsule(py: Python<'_>, reader: Reader) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

pub fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(schema).map_err(unreadable)?, SCHEMA)
}

/// Rows that Python passed: one batch, or a stream of batches.
pub struct Batches(Reader);

impl Batches {
    pub fn into_reader(self) -> Reader {
        self.0
    }
}

impl FromPyObject<'_, '_> for Batches {
    type Error = PyErr;

    fn extract(source: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if source.hasattr("__arrow_c_stream__")? {
            let capsule = source.call_method0("__arrow_c_stream__")?;
            // two threads may pass the same capsule at once in builds without the GIL; the second thread must find it
            // released
            let stream = with_critical_section(&capsule, || -> PyResult<_> {
                let stream = pointer(&capsule, STREAM)?.cast();
                // SAFETY: the capsule's name guarantees the struct type. The struct is moved out, and the original is
                // marked released.
                Ok(unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) })
            })?;
            return Ok(Self(Box::new(Stream::new(stream).map_err(unreadable)?)));
        }
        let batch = source.extract::<OneBatch>()?.0;
        let schema = batch.schema();
        Ok(Self(Box::new(RecordBatchIterator::new([Ok(batch)], schema))))
    }
}

/// The fields of an Arrow schema, or of a struct type.
pub struct ArrowFields(pub Fields);

impl FromPyObject<'_, '_> for ArrowFields {
    type Error = PyErr;

    fn extract(source: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if !source.hasattr("__arrow_c_schema__")? {
            let got = source.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "expected a schema of Arrow, with __arrow_c_schema__, got {got}"
            )));
        }
        let capsule = source.call_method0("__arrow_c_schema__")?;
        // a critical section for the same reason as for a stream
        let (schema, is_released) = with_critical_section(&capsule, || -> PyResult<_> {
            let schema = pointer(&capsule, SCHEMA)?;
            // SAFETY: as for the schema of a batch
            Ok(unsafe {
                let is_released = (*schema.cast::<*const c_char>().as_ptr()).is_null();
                (FFI_ArrowSchema::from_raw(schema.as_ptr().cast()), is_released)
            })
        })?;
        if is_released {
            return Err(PyValueError::new_err(
                "expected a schema of Arrow, got one that is released: it was taken before",
            ));
        }
        match DataType::try_from(&schema).map_err(unreadable)? {
            DataType::Struct(fields) => Ok(Self(fields)),
            other => Err(PyTypeError::new_err(format!("expected a schema of Arrow or a struct type, got {other}"))),
        }
    }
}

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
        // a critical section for the same reason as for a stream
        let (schema, array, is_schema_released) = with_critical_section2(&schema, &array, || -> PyResult<_> {
            let (schema, array) = (pointer(&schema, SCHEMA)?, pointer(&array, ARRAY)?);
            // SAFETY: the capsules' names guarantee the struct types. The structs are moved out, and the originals are
            // marked released. A schema starts with a pointer to its format, which is null in a released schema.
            Ok(unsafe {
                let is_released = (*schema.cast::<*const c_char>().as_ptr()).is_null();
                let array = FFI_ArrowArray::from_raw(array.as_ptr().cast());
                (FFI_ArrowSchema::from_raw(schema.as_ptr().cast()), array, is_released)
            })
        })?;
        if is_schema_released || array.is_released() {
            return Err(PyValueError::new_err(
                "expected rows of Arrow, got an array that is released: it was taken before",
            ));
        }
        // SAFETY: the interface guarantees that the array matches the schema; both came from one call.
        let data = unsafe { from_ffi(array, &schema) }.map_err(unreadable)?;
        let DataType::Struct(fields) = data.data_type() else {
            let text = format!("expected rows of Arrow, a struct array, got one of {}", data.data_type());
            return Err(PyTypeError::new_err(text));
        };
        let schema = Arc::new(Schema::new(fields.clone()));
        batch(data, schema).map(Self).map_err(unreadable)
    }
}

/// Reads the batches of a stream that another library made. Arrow's own reader would ignore null rows, and panic if a
/// stream fails without an error text.
struct Stream {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl Stream {
    fn new(mut stream: FFI_ArrowArrayStream) -> Result<Self, ArrowError> {
        let Some(get_schema) = stream.get_schema else {
            return Err(wrong("expected a stream of rows, got one that is released: it was taken before"));
        };
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: a stream that is not released has this function. It takes the stream and writes a schema.
        match unsafe { get_schema(&raw mut stream, &raw mut schema) } {
            0 => Ok(Self { schema: Arc::new(Schema::try_from(&schema)?), stream }),
            code => Err(stream_error(&mut stream, code)),
        }
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let get_next = self.stream.get_next?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as for the schema. It writes an array, and behind the last a released array.
        let code = unsafe { get_next(&raw mut self.stream, &raw mut array) };
        if code != 0 {
            return Some(Err(stream_error(&mut self.stream, code)));
        }
        if array.is_released() {
            return None;
        }
        let rows = DataType::Struct(self.schema.fields().clone());
        // SAFETY: the interface guarantees that each array matches the stream's schema.
        let data = unsafe { from_ffi_and_data_type(array, rows) };
        Some(data.and_then(|data| batch(data, self.schema.clone())))
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Converts a struct array to a batch. Refuses null rows, because a batch can have null values but no null rows.
fn batch(data: ArrayData, schema: SchemaRef) -> Result<RecordBatch, ArrowError> {
    if data.null_count() > 0 {
        return Err(wrong(&format!("expected rows, got {} that are null", data.null_count())));
    }
    // a batch without columns has no other way to know its number of rows
    let options = RecordBatchOptions::new().with_row_count(Some(data.len()));
    RecordBatch::try_new_with_options(schema, StructArray::from(data).into_parts().1, &options)
}

fn stream_error(stream: &mut FFI_ArrowArrayStream, code: c_int) -> ArrowError {
    let text = stream.get_last_error.and_then(|get_last_error| {
        // SAFETY: a stream that is not released has this function; its text, if not null, is valid until the next call.
        unsafe {
            let text = get_last_error(&raw mut *stream);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    });
    wrong(&text.unwrap_or_else(|| format!("the stream failed with error {code}, and says no more")))
}

fn wrong(text: &str) -> ArrowError {
    ArrowError::CDataInterface(text.to_owned())
}

fn pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<std::ffi::c_void>> {
    capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))
}

fn unreadable(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("arrow: {error}"))
}
