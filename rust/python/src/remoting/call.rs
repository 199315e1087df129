//! A request that Python must answer.
use super::channel::Channel;
use super::command::{Fields, dict};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rmqfast_remoting::{Answer, Header, OwnedCommand, VERSION};

#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Call {
    pub request: OwnedCommand,
    pub answer: Answer,
}

#[pymethods]
impl Call {
    /// Returns `code, ext_fields, body, channel, remark, version, language, is_oneway`.
    #[allow(clippy::type_complexity, reason = "the fields of a request, in their order")]
    fn fields<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(i32, Bound<'py, PyDict>, Bound<'py, PyBytes>, Channel, Option<&str>, i32, Option<&'static str>, bool)>
    {
        let request = &self.request;
        Ok((
            request.code,
            dict(py, &request.fields)?,
            PyBytes::new(py, &request.body),
            Channel(self.answer.connection.clone()),
            request.remark.as_deref(),
            request.version,
            request.language.name(),
            self.answer.is_oneway,
        ))
    }

    /// Seconds since the request arrived.
    #[getter]
    fn age(&self) -> f64 {
        self.answer.asked_at.elapsed().as_secs_f64()
    }

    /// Sends the answer. Returns false if the connection is closed or the request is oneway.
    #[pyo3(signature = (code, remark, ext_fields, body, version = VERSION))]
    fn reply(&self, code: i32, remark: Option<&str>, ext_fields: Fields, body: &[u8], version: i32) -> bool {
        let fields = ext_fields.values();
        let header = Header { code, remark, fields: &fields, version, ..Header::response(self.request.serialize_type) };
        self.answer.send(&header, body)
    }
}
