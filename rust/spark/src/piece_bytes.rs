//! Pieces as bytes, which driver and tasks carry unread.
use crate::error::{Error, Result};
use serde_json::Value;

/// The first byte of a piece: a worker of another release says so, instead of reading something else.
const VERSION: u8 = 4;

/// The bytes of a piece.
pub fn to_bytes(piece: &Value) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(piece.to_string().as_bytes());
    bytes
}

/// What bytes of a piece say.
///
/// # Errors
/// Bytes of another release, or none of a piece.
pub fn of_bytes(bytes: &[u8]) -> Result<Value> {
    // driver and executors may have different wheels installed
    match bytes.split_first() {
        Some((&VERSION, text)) => serde_json::from_slice(text).map_err(malformed),
        Some((version, _)) => {
            let text =
                format!("piece: expected version {VERSION}, got {version}; driver and executors need one release");
            Err(Error::argument(text))
        }
        None => Err(Error::argument("piece: expected bytes, got none")),
    }
}

/// The error for bytes that are not what the reader's pieces are.
pub fn malformed(error: serde_json::Error) -> Error {
    Error::argument(format!("piece: {error}"))
}
