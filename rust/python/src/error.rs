//! Maps all Rust errors to the classes of `rmqfast.errors`.
use pyo3::exceptions::{PyBaseException, PyKeyboardInterrupt};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_store::Error;
use rmqfast_store::error::no_room;
use std::path::Path;

// errno ENOSPC
const NO_SPACE: i32 = 28;

/// Imports exception classes of Python, and defines `exception`, which creates an exception from the name of its class.
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

// the base class, used for class names that are not in the list
import_exception!(rmqfast.errors, RmqError);
classes! {
    ArgumentError,
    ChannelClosedError,
    ClientError,
    CorruptError,
    DataLossError,
    DecodeError,
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

/// Converts an error of the store.
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

/// Returns the exception for bytes that do not have the store's format.
pub fn corrupt(text: String) -> PyErr {
    CorruptError::new_err(text)
}

/// Converts an error of a connection.
pub fn remoting(error: rmqfast_remoting::Error) -> PyErr {
    match error {
        rmqfast_remoting::Error::Interrupted => interrupt_error(),
        error => exception(error.class(), error.to_string()),
    }
}

/// Returns the exception as an object, for code that passes it on instead of raising it.
///
/// `PyErr::value` would release the GIL in between, and panics if the interpreter has ended meanwhile.
#[expect(clippy::disallowed_methods, reason = "what was fetched is made already")]
pub fn object(py: Python<'_>, error: PyErr) -> Bound<'_, PyBaseException> {
    // restoring and fetching makes the object without releasing the GIL
    error.restore(py);
    PyErr::fetch(py).into_value(py).into_bound(py)
}

/// Returns the pending Python exception, or a `KeyboardInterrupt` if there is none.
fn interrupt_error() -> PyErr {
    // the exception of the signal handler was restored, so it is pending here
    Python::attach(PyErr::take).unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}

/// Converts an error of a client.
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

/// Returns the remark of a broker or a name server without Java's stack frames, exception classes and packages.
#[pyfunction]
pub fn plain_remark(remark: &str) -> std::borrow::Cow<'_, str> {
    rmqfast_client::remark::plain_remark(remark)
}

/// Returns the next step that a user should take after this remark of a broker or a name server; `None` if there is no
/// advice.
#[pyfunction]
pub fn step_after(remark: &str) -> Option<&'static str> {
    rmqfast_client::remark::step_after(remark)
}

/// Returns a `ClientError` with its response code.
pub fn client_error(py: Python<'_>, text: String, code: i32) -> PyResult<PyErr> {
    let keywords = PyDict::new(py);
    keywords.set_item("response_code", code)?;
    Ok(PyErr::from_value(py.import("rmqfast.errors")?.call_method("ClientError", (text,), Some(&keywords))?))
}

/// Converts an error of a read or write request of Spark.
pub fn spark(error: rmqfast_spark::Error) -> PyErr {
    use rmqfast_spark::Error as E;
    match error {
        E::Store(error) => to_python(error),
        E::Client(error) => client(error),
        E::Send { text, code } => Python::attach(|py| client_error(py, text, code).unwrap_or_else(|error| error)),
        error => exception(error.class(), error.to_string()),
    }
}

/// Returns an `OSError` with errno, text and file name.
fn io(path: &Path, source: &std::io::Error) -> PyErr {
    let path = path.to_string_lossy().into_owned();
    match (source.kind(), source.raw_os_error()) {
        // Rust's own NotFound may lack an errno; and a missing store has its own class
        (std::io::ErrorKind::NotFound, _) => StoreNotFoundError::new_err((2, "no such file or directory", path)),
        (_, Some(errno)) => StoreIOError::new_err((errno, words(source), path)),
        (_, None) => StoreIOError::new_err(format!("{path}: {source}")),
    }
}

fn words(source: &std::io::Error) -> String {
    let text = source.to_string();
    // `OSError` shows the errno itself
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
