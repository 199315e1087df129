use crate::error::{RemotingConnectError, RemotingError, client, object};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_client::cluster::{self, AskError};
use rmqfast_client::producer::no_route;

/// The name servers of an instance. Requests go to the same name server until it does not answer.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct NameServers {
    core: cluster::NameServers,
    /// `rmqfast.remoting.Connections`, which also signs requests.
    connections: Py<PyAny>,
    /// Callable that logs a warning.
    warn: Py<PyAny>,
}

#[pymethods]
impl NameServers {
    #[new]
    fn new(addresses: Vec<String>, connections: Py<PyAny>, warn: Py<PyAny>) -> Self {
        Self { core: cluster::NameServers::new(addresses), connections, warn }
    }

    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.core.addresses().to_vec()
    }

    #[getter]
    fn chosen(&self) -> Option<&str> {
        self.core.chosen()
    }

    fn check(&self) -> PyResult<()> {
        self.core.check().map_err(client)
    }

    #[pyo3(signature = (code, ext_fields=None, *, timeout=3.0))]
    fn request<'py>(
        &self,
        py: Python<'py>,
        code: i32,
        ext_fields: Option<Bound<'py, PyAny>>,
        timeout: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check()?;
        let named = PyDict::new(py);
        named.set_item("timeout", timeout)?;
        let request = |address: &str| {
            let arguments = (address, code, &ext_fields);
            let answer = self.connections.bind(py).call_method(intern!(py, "request"), arguments, Some(&named));
            answer.map_err(|error| match error.is_instance_of::<RemotingError>(py) {
                true => AskError::NoAnswer(object(py, error).to_string()),
                false => AskError::Other(error),
            })
        };
        // logged at once: the next name server may take as long as the one before
        let mut unlogged = None;
        let asked = self.core.ask(request, |text| {
            if let Err(error) = self.warn.call1(py, (text,)) {
                unlogged.get_or_insert(error);
            }
        });
        unlogged.map_or(Ok(()), Err)?;
        asked?.map_err(|failures| RemotingConnectError::new_err(failures.join("; ")))
    }
}

/// Returns the error for a topic without a route. `refusal` is the name server's code and remark.
#[pyfunction]
#[pyo3(signature = (topic, refusal=None))]
pub fn no_route_error(py: Python<'_>, topic: &str, refusal: Option<(i32, String)>) -> Py<PyAny> {
    object(py, client(no_route(topic, refusal))).into_any().unbind()
}
