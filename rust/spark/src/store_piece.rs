//! A task's share of a read of a store, as bytes.
use crate::error::Result;
use crate::piece_bytes::{self, malformed};
use rmqfast_store::scan::{Piece, Way};
use serde_json::Value;

/// The piece as bytes, which driver and tasks carry unread.
pub fn to_bytes(piece: &Piece) -> Vec<u8> {
    piece_bytes::to_bytes(&to_json(piece))
}

/// The piece that bytes are.
///
/// # Errors
/// Bytes of another release, or none of a piece of a store.
pub fn of_bytes(bytes: &[u8]) -> Result<Piece> {
    of_json(piece_bytes::of_bytes(bytes)?).map_err(malformed)
}

/// The piece as a part of another one.
pub fn to_json(piece: &Piece) -> Value {
    let Piece { way, from, end, verify_crc } = piece;
    serde_json::json!([*way == Way::Queue, from, end, verify_crc])
}

/// What [`to_json`] gave.
///
/// # Errors
/// Another value.
pub fn of_json(json: Value) -> serde_json::Result<Piece> {
    let (is_by_queue, from, end, verify_crc) = serde_json::from_value(json)?;
    Ok(Piece { way: if is_by_queue { Way::Queue } else { Way::Log }, from, end, verify_crc })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic_piece::TopicPiece;

    #[test]
    fn a_piece_comes_back_from_its_bytes_and_one_of_another_release_is_refused() {
        for way in [Way::Log, Way::Queue] {
            let piece = Piece { way, from: 5, end: u64::MAX, verify_crc: true };
            let mut bytes = to_bytes(&piece);
            assert_eq!(of_bytes(&bytes).expect("a piece"), piece);
            bytes[0] = 1;
            let error = of_bytes(&bytes).expect_err("another release").to_string();
            assert!(error.starts_with("piece: expected version 4, got 1"), "{error}");
        }
        let of_topic =
            TopicPiece { address: None, ranges: Vec::new(), goes_on: false, log: None, copy: None }.to_bytes();
        for bytes in [&b""[..], b"\x04", b"\x04[null]", b"\x04[false,-1,1,false]", &of_topic] {
            let error = of_bytes(bytes).expect_err("no piece of a store").to_string();
            assert!(error.starts_with("piece: "), "{error}");
        }
    }
}
