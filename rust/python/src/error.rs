//! Rust's errors as the classes of `rmqfast.errors`: the one place where they meet.
use pyo3::exceptions::{PyBaseException, PyKeyboardInterrupt};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_store::Error;
use rmqfast_store::error::no_room;
use std::path::Path;

const NO_SPACE: i32 = 28;

/// Imports the classes, and finds one by the name that `class()` of a Rust error gives.
macro_rules! classes {
    ($($name:ident),+ $(,)?) => {
        $(import_exception!(rmqfast.errors, $name);)+

        fn exception(class: &str, text: String) -> PyErr {
            match class {
                $(stringify!($name) => $name::new_err(text),)+
                _ => RmqError::new_err(text),
            }
        }
    };
}

import_exception!(rmqfast.errors, RmqError);
classes! {
    ArgumentError,
    ChannelClosedError,
    ClientError,
    CorruptError,
    DataLossError,
    ExpressionError,
    FlushTimeoutError,
    ForkError,
    RemotingConnectError,
    RemotingError,
    RemotingProtocolError,
    RemotingTimeoutError,
    ResponseError,
    StoreBusyError,
    StoreError,
    StoreIOError,
    StoreNotFoundError,
    StoreNotWritableError,
    TlsError,
    TlsFileError,
    TooManyRequestsError,
    UnknownColumnError,
    UnknownMessageError,
    UnknownTopicError,
    UnsupportedStoreError,
}

/// The Python exception for `error`.
pub fn to_python(error: Error) -> PyErr {
    match error {
        Error::Io { path, source } => io(&path, &source),
        Error::NoRoom { path, needed, free } => {
            StoreIOError::new_err((NO_SPACE, no_room(needed, free), path.to_string_lossy().into_owned()))
        }
        Error::Interrupted => interrupt_error(),
        error => exception(error.class(), error.to_string()),
    }
}

/// The Python exception for bytes of a store that contradict the format.
pub fn corrupt(text: String) -> PyErr {
    CorruptError::new_err(text)
}

/// The Python exception for an error of a connection.
pub fn remoting(error: rmqfast_remoting::Error) -> PyErr {
    match error {
        rmqfast_remoting::Error::Interrupted => interrupt_error(),
        error => exception(error.class(), error.to_string()),
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
    use rmqfast_client::Error as E;
    match error {
        E::Remoting(error) => remoting(error),
        E::Store(error) => to_python(error),
        E::Response { code, remark, address } => ResponseError::new_err((code, remark, address)),
        E::Client { code, .. } => {
            let text = error.to_string();
            Python::attach(|py| client_error(py, text, code).unwrap_or_else(|error| error))
        }
        error => exception(error.class(), error.to_string()),
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

/// The Python exception for a read or write request of Spark.
pub fn spark(error: rmqfast_spark::Error) -> PyErr {
    use rmqfast_spark::Error as E;
    match error {
        E::Store(error) => to_python(error),
        E::Client(error) => client(error),
        E::Send { text, code } => Python::attach(|py| client_error(py, text, code).unwrap_or_else(|error| error)),
        error => exception(error.class(), error.to_string()),
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
