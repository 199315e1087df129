//! Signs requests with an account.
use crate::pairs::Pairs;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict};
use rmqfast_remoting::{Credentials, signature_of as of_fields};

/// Returns the signature of a request. The field `Signature` and the field named `without` are not signed.
#[pyfunction]
pub fn signature_of<'py>(
    ext_fields: &Bound<'py, PyAny>,
    body: &[u8],
    secret_key: &[u8],
    without: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let fields = texts(ext_fields)?;
    Ok(PyBytes::new(ext_fields.py(), of_fields(&as_strs(&fields), body, secret_key, without).as_bytes()))
}

/// Returns the fields that an account adds to a request.
#[pyfunction]
pub fn sign_fields<'py>(
    access_key: &str,
    secret_key: &Bound<'py, PyAny>,
    security_token: Option<String>,
    ext_fields: &Bound<'py, PyAny>,
    body: &[u8],
) -> PyResult<Bound<'py, PyDict>> {
    let secret_key = text(secret_key)?.to_string();
    let credentials = Credentials { access_key: access_key.to_owned(), secret_key, security_token };
    let (added, fields) = (PyDict::new(ext_fields.py()), texts(ext_fields)?);
    for (name, value) in credentials.sign(&as_strs(&fields), body) {
        added.set_item(name, value)?;
    }
    Ok(added)
}

fn texts(mapping: &Bound<'_, PyAny>) -> PyResult<Pairs> {
    // not `pairs`, which refuses strings with surrogates
    let items = mapping.call_method0("items")?.try_iter()?;
    let items = items.map(|item| {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        Ok((text(&name)?, text(&value)?))
    });
    items.collect()
}

/// Replaces unpaired surrogates by question marks, as Java does.
fn text(text: &Bound<'_, PyAny>) -> PyResult<PyBackedStr> {
    text.extract().or_else(|_: PyErr| {
        text.call_method1("encode", ("utf-8", "replace"))?.call_method1("decode", ("utf-8",))?.extract()
    })
}

fn as_strs(pairs: &Pairs) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (&**name, &**value)).collect()
}
