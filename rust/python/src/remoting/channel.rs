//! Exposes a server's open connection, to send requests to the client.
use super::command::{Answered, Fields, answer_to_python, interruptible, seconds};
use crate::error::remoting;
use pyo3::prelude::*;
use rmqfast_remoting::Connection;
use std::sync::Arc;

/// An open connection. Two objects of the same connection are equal.
#[pyclass(frozen, eq, hash, module = "rmqfast._native._rmqfast")]
pub struct Channel(pub Arc<Connection>);

impl PartialEq for Channel {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl std::hash::Hash for Channel {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

#[pymethods]
impl Channel {
    /// Number of the connection, unique in this process.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }

    /// Address of the peer as `host:port`.
    #[getter]
    fn address(&self) -> &str {
        self.0.address()
    }

    #[getter]
    fn remote_address(&self) -> String {
        self.0.peer().to_string()
    }

    #[getter]
    fn local_address(&self) -> String {
        self.0.local().to_string()
    }

    #[getter]
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    fn request<'py>(
        &self,
        py: Python<'py>,
        code: i32,
        ext_fields: Fields,
        body: &[u8],
        timeout: f64,
    ) -> PyResult<Answered<'py>> {
        let fields = ext_fields.values();
        let ask = interruptible(code, &fields, body, seconds(timeout));
        // the GIL is released while the client takes its time
        let answer = py.detach(|| self.0.ask(ask));
        answer_to_python(py, answer.map_err(remoting)?)
    }

    fn send_oneway(&self, code: i32, ext_fields: Fields, body: &[u8]) {
        self.0.send_oneway(code, &ext_fields.values(), body);
    }

    fn close(&self) {
        self.0.close();
    }

    fn __repr__(&self) -> String {
        format!("<Channel {}>", self.0.peer())
    }
}
