//! A task's share of a read of a store, as bytes that driver and tasks carry unread.
use crate::error::{Error, Result};
use rmqfast_store::scan::{Piece, Way};

/// The first byte: an executor of another release says so, instead of reading something else.
const VERSION: u8 = 1;

/// The piece as bytes.
pub fn to_bytes(piece: &Piece) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    let Piece { way, from, end, verify_crc } = piece;
    bytes.extend_from_slice(serde_json::json!([*way == Way::Queue, from, end, verify_crc]).to_string().as_bytes());
    bytes
}

/// The piece that bytes are.
///
/// # Errors
/// Bytes of another release, or none of a piece.
pub fn of_bytes(bytes: &[u8]) -> Result<Piece> {
    let text = match bytes.split_first() {
        Some((&VERSION, text)) => text,
        first => {
            let got = first.map_or_else(|| "none".to_owned(), |(version, _)| version.to_string());
            let text = format!("piece: expected version {VERSION}, got {got}; driver and executors need one release");
            return Err(Error::argument(text));
        }
    };
    let (is_queue, from, end, verify_crc) =
        serde_json::from_slice(text).map_err(|error| Error::argument(format!("piece: {error}")))?;
    Ok(Piece { way: if is_queue { Way::Queue } else { Way::Log }, from, end, verify_crc })
}
