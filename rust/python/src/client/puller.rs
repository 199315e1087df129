//! The pipelined puller.
use super::decode::to_tags;
use super::fetched::{Bodies, to_python};
use crate::error::{ForkError, client};
use crate::remoting::tls::PyTlsOptions;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use rmqfast_client::puller::{self, Allowance, Assignment, Gather, PullerOptions, Queue, Sign};
use rmqfast_store::scan::ScanRequest;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Pulls many queues of one broker over a connection of its own.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Puller {
    inner: puller::Puller,
    broker_name: Option<Arc<str>>,
    bodies: Bodies,
    process: u32,
}

impl Puller {
    fn check_process(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let text = format!("this puller was opened in process {}, not in its fork; open one here", self.process);
        Err(ForkError::new_err(text))
    }
}

#[pymethods]
impl Puller {
    #[new]
    #[pyo3(signature = (address, *, consumer_group, broker_name=None, depth=8, batch=32, suspend=20.0, timeout=30.0,
                        connect_timeout=3.0, retry=1.0, of_queue=(10_000, 32 << 20), in_all=(100_000, 128 << 20),
                        tls=None, ext_fields=None, sign=None, max_body_bytes=ScanRequest::MAX_BODY_BYTES,
                        verify_crc=false, burst=1, gather=(0, 0.0)))]
    #[allow(clippy::too_many_arguments, reason = "the keywords of a Python class")]
    fn open(
        address: &str,
        consumer_group: String,
        broker_name: Option<&str>,
        depth: usize,
        batch: i64,
        suspend: f64,
        timeout: f64,
        connect_timeout: f64,
        retry: f64,
        of_queue: (i64, i64),
        in_all: (i64, i64),
        tls: Option<PyTlsOptions>,
        ext_fields: Option<HashMap<String, String>>,
        sign: Option<Py<PyAny>>,
        max_body_bytes: usize,
        verify_crc: bool,
        burst: usize,
        gather: (i64, f64),
    ) -> PyResult<Self> {
        let options = PullerOptions {
            tls: tls.map(PyTlsOptions::into_client).transpose()?,
            consumer_group,
            depth: depth.max(1),
            burst: burst.clamp(1, depth.max(1)),
            gather: Gather { bytes: gather.0.max(0), pause: seconds(gather.1) },
            batch: batch.max(1),
            suspend: seconds(suspend),
            timeout: seconds(timeout),
            connect_timeout: seconds(connect_timeout),
            retry: seconds(retry),
            sys_flag: PullerOptions::SYS_FLAG,
            of_queue: Allowance { messages: of_queue.0, bytes: of_queue.1 },
            in_all: Allowance { messages: in_all.0, bytes: in_all.1 },
            ext_fields: ext_fields.into_iter().flatten().collect(),
            sign: sign.map(signer),
        };
        let inner = puller::Puller::open(address, options).map_err(client)?;
        let bodies = Bodies { max_bytes: max_body_bytes, verify_crc };
        Ok(Self { inner, broker_name: broker_name.map(Into::into), bodies, process: std::process::id() })
    }

    #[pyo3(signature = (topic, queue_id, offset, *, end=None, expression="*", expression_type="TAG", sub_version=0,
                        tags=None, paused=false))]
    #[allow(clippy::too_many_arguments, reason = "the keywords of a Python method")]
    fn assign(
        &self,
        topic: String,
        queue_id: i32,
        offset: i64,
        end: Option<i64>,
        expression: &str,
        expression_type: &str,
        sub_version: i64,
        tags: Option<HashSet<String>>,
        paused: bool,
    ) -> PyResult<u64> {
        self.check_process()?;
        let assignment = Assignment {
            start: offset,
            end,
            expression: expression.to_owned(),
            expression_type: expression_type.to_owned(),
            sub_version,
            tags: tags.filter(|tags| !tags.is_empty()).map(|tags| to_tags(tags).into()),
            is_paused: paused,
        };
        Ok(self.inner.assign(Queue { topic, queue_id }, assignment))
    }

    fn remove(&self, topic: String, queue_id: i32) -> PyResult<bool> {
        self.check_process()?;
        Ok(self.inner.remove(&Queue { topic, queue_id }))
    }

    fn seek(&self, topic: String, queue_id: i32, offset: i64) -> PyResult<Option<u64>> {
        self.check_process()?;
        Ok(self.inner.seek(&Queue { topic, queue_id }, offset))
    }

    fn pause(&self, topic: String, queue_id: i32) -> PyResult<bool> {
        self.check_process()?;
        Ok(self.inner.pause(&Queue { topic, queue_id }, true))
    }

    fn resume(&self, topic: String, queue_id: i32) -> PyResult<bool> {
        self.check_process()?;
        Ok(self.inner.pause(&Queue { topic, queue_id }, false))
    }

    #[pyo3(signature = (timeout, *, max_items=64))]
    fn take<'py>(&self, py: Python<'py>, timeout: f64, max_items: usize) -> PyResult<Bound<'py, PyList>> {
        self.check_process()?;
        let until = Instant::now() + seconds(timeout);
        loop {
            let now = Instant::now();
            let items = py.detach(|| self.inner.take(until.min(now + LOOK), max_items)).map_err(client)?;
            if !items.is_empty() || until <= now || max_items == 0 {
                let broker_name = &self.broker_name;
                let items = items.into_iter().map(|item| to_python(py, item, broker_name, self.bodies));
                return PyList::new(py, items.collect::<PyResult<Vec<_>>>()?);
            }
            py.check_signals()?;
        }
    }

    #[getter]
    fn held(&self) -> (i64, i64) {
        let held = self.inner.held();
        (held.messages, held.bytes)
    }

    fn close(&self, py: Python<'_>) {
        if self.process == std::process::id() {
            py.detach(|| self.inner.close());
        }
    }
}

fn seconds(seconds: f64) -> Duration {
    // what is no duration at all is as good as a year
    Duration::try_from_secs_f64(seconds.clamp(0.0, 31_536_000.0)).unwrap_or_default()
}

/// A Python callable that signs; it gets code, fields and body, and gives further fields.
fn signer(callable: Py<PyAny>) -> Arc<Sign> {
    Arc::new(move |code, fields| {
        let signed = Python::try_attach(|py| {
            let given = PyDict::new(py);
            fields.iter().try_for_each(|(name, value)| given.set_item(name, value))?;
            callable.bind(py).call1((code, given, PyBytes::new(py, b"")))?.extract::<HashMap<String, String>>()
        });
        match signed {
            Some(Ok(fields)) => Ok(fields.into_iter().collect()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the interpreter ends".to_owned()),
        }
    })
}
