//! Rust's errors as the classes of `rmqfast.errors`: the one place where they meet.
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::import_exception;
use pyo3::prelude::*;
use rmqfast_store::Error;
use std::path::Path;

import_exception!(rmqfast.errors, ArgumentError);
import_exception!(rmqfast.errors, CorruptError);
import_exception!(rmqfast.errors, ExpressionError);
import_exception!(rmqfast.errors, FlushTimeoutError);
import_exception!(rmqfast.errors, ForkError);
import_exception!(rmqfast.errors, StoreBusyError);
import_exception!(rmqfast.errors, StoreIOError);
import_exception!(rmqfast.errors, StoreNotFoundError);
import_exception!(rmqfast.errors, StoreNotWritableError);
import_exception!(rmqfast.errors, UnknownColumnError);
import_exception!(rmqfast.errors, UnknownMessageError);
import_exception!(rmqfast.errors, UnknownTopicError);
import_exception!(rmqfast.errors, UnsupportedStoreError);

/// The Python exception for `error`.
pub fn to_python(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Io { path, source } => io(&path, &source),
        Error::Corrupt { .. } => CorruptError::new_err(text),
        Error::Unsupported { .. } => UnsupportedStoreError::new_err(text),
        Error::Unknown { what: "column", .. } => UnknownColumnError::new_err(text),
        Error::Unknown { what: "message", .. } => UnknownMessageError::new_err(text),
        Error::Unknown { .. } => UnknownTopicError::new_err(text),
        Error::Expression { .. } => ExpressionError::new_err(text),
        Error::Busy { .. } => StoreBusyError::new_err(text),
        Error::NotWritable { .. } => StoreNotWritableError::new_err(text),
        Error::FlushTimeout { .. } => FlushTimeoutError::new_err(text),
        // Whoever interrupts raises; without a pending exception it was Ctrl-C.
        Error::Interrupted => Python::attach(PyErr::take).unwrap_or_else(|| PyKeyboardInterrupt::new_err(())),
        _ => ArgumentError::new_err(text),
    }
}

/// `OSError` keeps its errno, its words and its file name.
fn io(path: &Path, source: &std::io::Error) -> PyErr {
    let path = path.to_string_lossy().into_owned();
    match (source.kind(), source.raw_os_error()) {
        (std::io::ErrorKind::NotFound, _) => StoreNotFoundError::new_err((2, "no such file or directory", path)),
        (_, Some(errno)) => StoreIOError::new_err((errno, words(source), path)),
        (_, None) => StoreIOError::new_err(format!("{path}: {source}")),
    }
}

fn words(source: &std::io::Error) -> String {
    let text = source.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
