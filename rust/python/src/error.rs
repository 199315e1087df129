//! Rust's errors as the classes of `rmqfast.errors`: the one place where they meet.
use pyo3::exceptions::{PyBaseException, PyKeyboardInterrupt};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_store::Error;
use rmqfast_store::error::no_room;
use std::path::Path;

const NO_SPACE: i32 = 28;

import_exception!(rmqfast.errors, ArgumentError);
import_exception!(rmqfast.errors, ClientError);
import_exception!(rmqfast.errors, CorruptError);
import_exception!(rmqfast.errors, DataLossError);
import_exception!(rmqfast.errors, ExpressionError);
import_exception!(rmqfast.errors, FlushTimeoutError);
import_exception!(rmqfast.errors, ForkError);
import_exception!(rmqfast.errors, ChannelClosedError);
import_exception!(rmqfast.errors, RemotingConnectError);
import_exception!(rmqfast.errors, RemotingError);
import_exception!(rmqfast.errors, RemotingProtocolError);
import_exception!(rmqfast.errors, RemotingTimeoutError);
import_exception!(rmqfast.errors, ResponseError);
import_exception!(rmqfast.errors, RmqError);
import_exception!(rmqfast.errors, StoreBusyError);
import_exception!(rmqfast.errors, StoreError);
import_exception!(rmqfast.errors, StoreIOError);
import_exception!(rmqfast.errors, StoreNotFoundError);
import_exception!(rmqfast.errors, StoreNotWritableError);
import_exception!(rmqfast.errors, TlsError);
import_exception!(rmqfast.errors, TooManyRequestsError);
import_exception!(rmqfast.errors, TlsFileError);
import_exception!(rmqfast.errors, UnknownColumnError);
import_exception!(rmqfast.errors, UnknownMessageError);
import_exception!(rmqfast.errors, UnknownTopicError);
import_exception!(rmqfast.errors, UnsupportedStoreError);

/// The Python exception for `error`.
pub fn to_python(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Io { path, source } => io(&path, &source),
        Error::NoRoom { path, needed, free } => {
            StoreIOError::new_err((NO_SPACE, no_room(needed, free), path.to_string_lossy().into_owned()))
        }
        Error::Corrupt { .. } => CorruptError::new_err(text),
        Error::Unsupported { .. } => UnsupportedStoreError::new_err(text),
        // before the general case: a caller catches these apart
        Error::Unknown { what: "column", .. } => UnknownColumnError::new_err(text),
        Error::Unknown { what: "message", .. } => UnknownMessageError::new_err(text),
        Error::Unknown { .. } => UnknownTopicError::new_err(text),
        Error::Expression { .. } => ExpressionError::new_err(text),
        Error::Busy { .. } => StoreBusyError::new_err(text),
        Error::NotWritable { .. } => StoreNotWritableError::new_err(text),
        Error::Closed { .. } | Error::InUse { .. } => StoreError::new_err(text),
        Error::FlushTimeout { .. } => FlushTimeoutError::new_err(text),
        Error::Interrupted => interrupt_error(),
        _ => ArgumentError::new_err(text),
    }
}

/// The Python exception for bytes of a store that contradict the format.
pub fn corrupt(text: String) -> PyErr {
    CorruptError::new_err(text)
}

/// The Python exception for an error of a connection.
pub fn remoting(error: rmqfast_remoting::Error) -> PyErr {
    use rmqfast_remoting::Error as E;
    let text = error.to_string();
    match error {
        E::Malformed { .. } | E::TooLarge { .. } => RemotingProtocolError::new_err(text),
        E::Connect { .. } => RemotingConnectError::new_err(text),
        E::Closed { .. } | E::OnewayLost { .. } => ChannelClosedError::new_err(text),
        E::Timeout { .. } => RemotingTimeoutError::new_err(text),
        E::TlsFile { .. } => TlsFileError::new_err(text),
        E::Tls { .. } => TlsError::new_err(text),
        E::TooManyRequests { .. } => TooManyRequestsError::new_err(text),
        E::Interrupted => interrupt_error(),
        E::Forked => ForkError::new_err(text),
        E::Io { .. } => RemotingError::new_err(text),
    }
}

/// The exception as an object, for whoever gives it to somebody instead of raising it.
///
/// `PyErr::value` makes it too, but lets go of the GIL meanwhile, and panics where the interpreter has ended by then.
#[expect(clippy::disallowed_methods, reason = "what was fetched is made already")]
pub fn object(py: Python<'_>, error: PyErr) -> Bound<'_, PyBaseException> {
    // by setting and fetching it: `fetch` makes the object without letting go of the GIL
    error.restore(py);
    PyErr::fetch(py).into_value(py).into_bound(py)
}

/// Whoever interrupts raises; without a pending exception it was Ctrl-C.
fn interrupt_error() -> PyErr {
    // the exception that the signal's handler raised was restored, and waits here
    Python::attach(PyErr::take).unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}

/// The Python exception for what a broker answered.
pub fn client(error: rmqfast_client::Error) -> PyErr {
    let text = error.to_string();
    match error {
        rmqfast_client::Error::Body { .. } => RemotingProtocolError::new_err(text),
        rmqfast_client::Error::Remoting(error) => remoting(error),
        rmqfast_client::Error::Store(error) => to_python(error),
        rmqfast_client::Error::Closed => ChannelClosedError::new_err(text),
        rmqfast_client::Error::Argument(_) => ArgumentError::new_err(text),
        rmqfast_client::Error::Corrupt(_) => CorruptError::new_err(text),
        rmqfast_client::Error::Response { code, remark, address } => ResponseError::new_err((code, remark, address)),
        rmqfast_client::Error::UnknownTopic(_) => UnknownTopicError::new_err(text),
        rmqfast_client::Error::DataLoss { .. } => DataLossError::new_err(text),
        rmqfast_client::Error::Client { code, .. } => {
            Python::attach(|py| client_error(py, text, code).unwrap_or_else(|error| error))
        }
    }
}

/// A peer's remark, for people.
#[pyfunction]
pub fn plain_remark(remark: &str) -> std::borrow::Cow<'_, str> {
    rmqfast_client::remark::plain_remark(remark)
}

/// The next step after a peer's remark.
#[pyfunction]
pub fn step_after(remark: &str) -> Option<&'static str> {
    rmqfast_client::remark::step_after(remark)
}

/// A `ClientError` with its code.
pub fn client_error(py: Python<'_>, text: String, code: i32) -> PyResult<PyErr> {
    let keywords = PyDict::new(py);
    keywords.set_item("response_code", code)?;
    Ok(PyErr::from_value(py.import("rmqfast.errors")?.call_method("ClientError", (text,), Some(&keywords))?))
}

/// The Python exception for a read request of Spark that cannot be.
pub fn spark(error: rmqfast_spark::Error) -> PyErr {
    use rmqfast_spark::Error as E;
    let text = error.to_string();
    match error {
        E::Argument(_) => ArgumentError::new_err(text),
        E::Corrupt(_) => CorruptError::new_err(text),
        E::DataLoss(_) => DataLossError::new_err(text),
        E::UnknownColumn(_) => UnknownColumnError::new_err(text),
        E::Store(error) => to_python(error),
        E::Client(error) => client(error),
        E::Send { code, .. } => Python::attach(|py| client_error(py, text, code).unwrap_or_else(|error| error)),
    }
}

/// `OSError` keeps its errno, its words and its file name.
fn io(path: &Path, source: &std::io::Error) -> PyErr {
    let path = path.to_string_lossy().into_owned();
    match (source.kind(), source.raw_os_error()) {
        // Rust's own NotFound may have no number, and a store that is not there is a class of its own
        (std::io::ErrorKind::NotFound, _) => StoreNotFoundError::new_err((2, "no such file or directory", path)),
        (_, Some(errno)) => StoreIOError::new_err((errno, words(source), path)),
        (_, None) => StoreIOError::new_err(format!("{path}: {source}")),
    }
}

fn words(source: &std::io::Error) -> String {
    let text = source.to_string();
    // `OSError` shows the number itself
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
