//! Exposes the puller, which all consumers use.
use super::decode::to_tags;
use super::fetched::{Bodies, Fetched, to_python};
use super::message_queue::PulledQueue;
use crate::error::client;
use crate::process::check_opened_here;
use crate::remoting::tls::PyTlsOptions;
use crate::signals;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use rmqfast_client::puller::{
    self, Assignment, Broker, Gather, OnReady, PullerOptions, Sign, Subscription, Threshold, Volume,
};
use rmqfast_store::scan::ScanRequest;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

// interval of checks for Ctrl-C
const LOOK: Duration = Duration::from_millis(100);

/// Pulls many queues, over one connection for each broker.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct Puller {
    inner: puller::Puller,
    bodies: Bodies,
    process: u32,
}

impl Puller {
    fn check_process(&self) -> PyResult<()> {
        check_opened_here(self.process, "puller")
    }
}

#[pymethods]
impl Puller {
    #[new]
    #[pyo3(signature = (*, consumer_group, depth=8, batch=32, suspend=20.0, timeout=30.0, connect_timeout=3.0,
                        retry=1.0, interval=0.0, of_queue=(10_000, 32 << 20), in_all=(100_000, 128 << 20),
                        max_span=i64::MAX, sys_flag=PullerOptions::SYS_FLAG, commits_offsets=false,
                        counts_until_done=false, tls=None, ext_fields=None, sign=None,
                        max_body_bytes=ScanRequest::MAX_BODY_BYTES, verify_crc=false, burst=1, gather=(0, 0.0),
                        on_ready=None))]
    #[allow(clippy::too_many_arguments, reason = "the keywords of a Python class")]
    fn open(
        consumer_group: String,
        depth: usize,
        batch: i64,
        suspend: f64,
        timeout: f64,
        connect_timeout: f64,
        retry: f64,
        interval: f64,
        of_queue: (i64, i64),
        in_all: (i64, i64),
        max_span: i64,
        sys_flag: i32,
        commits_offsets: bool,
        counts_until_done: bool,
        tls: Option<PyTlsOptions>,
        ext_fields: Option<HashMap<String, String>>,
        sign: Option<Py<PyAny>>,
        max_body_bytes: usize,
        verify_crc: bool,
        burst: usize,
        gather: (i64, f64),
        on_ready: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let options = PullerOptions {
            tls: tls.map(PyTlsOptions::into_client).transpose()?,
            consumer_group,
            // with a depth, burst or batch of 0 nothing would ever be pulled
            depth: depth.max(1),
            burst: burst.clamp(1, depth.max(1)),
            gather: Gather { bytes: gather.0.max(0), pause: seconds(gather.1) },
            batch: batch.max(1),
            suspend: seconds(suspend),
            timeout: seconds(timeout),
            connect_timeout: seconds(connect_timeout),
            retry: seconds(retry),
            interval: seconds(interval),
            sys_flag,
            of_queue: threshold(of_queue),
            in_all: threshold(in_all),
            max_span,
            commits_offsets,
            counts_until_done,
            ext_fields: ext_fields.into_iter().flatten().collect(),
            sign: sign.map(signer),
        };
        let inner = puller::Puller::new(options, on_ready.map(caller));
        Ok(Self { inner, bodies: Bodies { max_bytes: max_body_bytes, verify_crc }, process: std::process::id() })
    }

    #[pyo3(signature = (queue, address, offset, *, is_slave=false, end=None, expression="*", expression_type="TAG",
                        sub_version=0, tags=None, paused=false, commit_offset=0))]
    #[allow(clippy::too_many_arguments, reason = "the keywords of a Python method")]
    fn assign(
        &self,
        queue: PulledQueue,
        address: String,
        offset: i64,
        is_slave: bool,
        end: Option<i64>,
        expression: &str,
        expression_type: &str,
        sub_version: i64,
        tags: Option<HashSet<String>>,
        paused: bool,
        commit_offset: i64,
    ) -> PyResult<u64> {
        self.check_process()?;
        let subscription = subscription(expression, expression_type, sub_version, tags).into();
        let (is_paused, start) = (paused, offset);
        let assignment = Assignment { start, end, subscription, is_paused, commit_offset, ..Assignment::default() };
        self.inner.assign(Broker { address, is_slave }, queue.0, assignment).map_err(client)
    }

    fn remove(&self, queue: PulledQueue) -> PyResult<bool> {
        self.check_process()?;
        Ok(self.inner.remove(&queue.0))
    }

    fn seek(&self, queue: PulledQueue, offset: i64) -> PyResult<Option<u64>> {
        self.check_process()?;
        Ok(self.inner.seek(&queue.0, offset))
    }

    #[pyo3(signature = (queue, address, *, is_slave=false))]
    fn move_to(&self, queue: PulledQueue, address: String, is_slave: bool) -> PyResult<bool> {
        self.check_process()?;
        self.inner.move_to(Broker { address, is_slave }, &queue.0).map_err(client)
    }

    fn pause(&self, queue: PulledQueue) -> PyResult<bool> {
        self.check_process()?;
        Ok(self.inner.pause(&queue.0, true))
    }

    fn resume(&self, queue: PulledQueue) -> PyResult<bool> {
        self.check_process()?;
        Ok(self.inner.pause(&queue.0, false))
    }

    #[pyo3(signature = (topic, *, expression, expression_type="TAG", sub_version=0, tags=None))]
    fn subscribe(
        &self,
        topic: &str,
        expression: &str,
        expression_type: &str,
        sub_version: i64,
        tags: Option<HashSet<String>>,
    ) -> PyResult<()> {
        self.check_process()?;
        self.inner.subscribe(topic, subscription(expression, expression_type, sub_version, tags));
        Ok(())
    }

    fn set_threshold(&self, messages: i64, size: i64) {
        self.inner.set_threshold(Threshold { messages, bytes: size });
    }

    fn done(&self, epoch: u64, messages: i64, size: i64, position: i64) {
        self.inner.acknowledge(epoch, Volume { messages, bytes: size }, position);
    }

    fn give_back(&self, fetched: PyRef<'_, Fetched>) {
        self.inner.give_back(fetched.inner().clone());
    }

    #[pyo3(signature = (timeout, *, max_items=64))]
    fn take<'py>(&self, py: Python<'py>, timeout: f64, max_items: usize) -> PyResult<Bound<'py, PyList>> {
        self.check_process()?;
        // `seconds` limits the timeout, so the sum cannot overflow
        let until = Instant::now() + seconds(timeout);
        loop {
            let now = Instant::now();
            // waits in short slices, since this thread must take the GIL to check for Ctrl-C
            let items = py.detach(|| self.inner.take(until.min(now + LOOK), max_items)).map_err(client)?;
            if !items.is_empty() || until <= now || max_items == 0 {
                let items = items.into_iter().map(|item| to_python(py, item, self.bodies));
                return PyList::new(py, items.collect::<PyResult<Vec<_>>>()?);
            }
            // checked only if no items arrived: an exception would lose them
            py.check_signals()?;
        }
    }

    #[getter]
    fn held(&self) -> (i64, i64) {
        let (volume, _) = self.inner.backlog();
        (volume.messages, volume.bytes)
    }

    #[getter]
    fn in_hand(&self) -> (i64, i64) {
        let (_, in_hand) = self.inner.backlog();
        (in_hand.messages, in_hand.bytes)
    }

    #[getter]
    fn is_handled(&self) -> bool {
        self.inner.is_handled()
    }

    #[getter]
    fn full_times(&self) -> u64 {
        self.inner.full_times()
    }

    fn close(&self, py: Python<'_>) {
        // a fork must not close the parent's threads and sockets
        if self.process == std::process::id() {
            py.detach(|| self.inner.close());
        }
    }
}

fn threshold((messages, bytes): (i64, i64)) -> Threshold {
    Threshold { messages, bytes }
}

pub fn subscription(
    expression: &str,
    expression_type: &str,
    version: i64,
    tags: Option<HashSet<String>>,
) -> Subscription {
    // like Java's `PullAPIWrapper`: without tags to compare, the broker's filter is enough
    let tags = tags.filter(|tags| !tags.is_empty()).map(|tags| to_tags(tags).into());
    let (expression, expression_type) = (expression.to_owned(), expression_type.to_owned());
    Subscription { expression, expression_type, version, tags }
}

/// Wraps a Python callable that takes no arguments. Its exceptions are reported as unraisable.
fn caller(callable: Py<PyAny>) -> Arc<OnReady> {
    Arc::new(move || {
        // `attach` in a thread of Rust panics once the interpreter ends
        Python::try_attach(|py| {
            if let Err(error) = callable.bind(py).call0() {
                // this thread has no caller that could handle the exception
                error.write_unraisable(py, Some(callable.bind(py)));
            }
        });
    })
}

pub fn seconds(seconds: f64) -> Duration {
    // infinity and NaN count as a year or as 0
    Duration::try_from_secs_f64(seconds.clamp(0.0, 31_536_000.0)).unwrap_or_default()
}

/// Wraps a Python callable that signs requests: it gets the code, fields and body of a request, and returns fields to
/// add.
pub fn signer(callable: Py<PyAny>) -> Arc<Sign> {
    Arc::new(move |code, fields, body| {
        // called without locks, since Python may call the puller while it signs
        let signed = Python::try_attach(|py| {
            let by_name = PyDict::new(py);
            fields.iter().try_for_each(|(name, value)| by_name.set_item(name, value))?;
            let signed = callable.bind(py).call1((code, by_name, PyBytes::new(py, body)));
            // a Ctrl-C that arrived here is triggered again for the main thread
            let signed = signed.inspect_err(|error| signals::come_again(py, error));
            signed?.extract::<HashMap<String, String>>()
        });
        match signed {
            Some(Ok(fields)) => Ok(fields.into_iter().collect()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the interpreter ends".to_owned()),
        }
    })
}
