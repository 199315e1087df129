//! A task's share of a read of stores, and its serialized form.
use crate::error::{Error, Result};
use rmqfast_store::scan::{Piece, Way};
use serde_json::{Value, json};
use std::borrow::Borrow;

/// A part of the log of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePiece {
    pub piece: Piece,
    /// The broker's name and the path of its store, in a read of several stores.
    pub broker: Option<(String, String)>,
    /// Hosts on which a task should run.
    pub hosts: Vec<String>,
}

impl Borrow<Piece> for StorePiece {
    fn borrow(&self) -> &Piece {
        &self.piece
    }
}

impl StorePiece {
    /// Serializes the piece. Driver and tasks pass the bytes on without parsing them.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(&json!([to_json(&self.piece), self.broker, self.hosts]))
    }

    /// Parses a serialized piece.
    ///
    /// # Errors
    /// Bytes of another release, or bytes that are not a piece of a store.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self> {
        let (piece, broker, hosts) = serde_json::from_value(decode(bytes)?).map_err(malformed_piece)?;
        Ok(Self { piece: of_json(piece).map_err(malformed_piece)?, broker, hosts })
    }
}

/// Returns the hosts on which a task should run that reads a piece of a store or of topics. A piece of topics has none.
///
/// # Errors
/// Bytes of another release, or bytes that are not a piece.
pub fn hosts_of(bytes: &[u8]) -> Result<Vec<String>> {
    // a piece of topics has more parts than one of a store
    let parts: Vec<Value> = serde_json::from_value(decode(bytes)?).map_err(malformed_piece)?;
    if parts.len() == 3 { StorePiece::of_bytes(bytes).map(|piece| piece.hosts) } else { Ok(Vec::new()) }
}

/// Formats the piece as JSON, for a piece of topics that contains it.
pub fn to_json(piece: &Piece) -> Value {
    let Piece { way, from, end, verify_crc } = piece;
    serde_json::json!([*way == Way::Queue, from, end, verify_crc])
}

/// Parses the JSON of [`to_json`].
///
/// # Errors
/// The value is not a piece of a store.
pub fn of_json(json: Value) -> serde_json::Result<Piece> {
    let (is_by_queue, from, end, verify_crc) = serde_json::from_value(json)?;
    Ok(Piece { way: if is_by_queue { Way::Queue } else { Way::Log }, from, end, verify_crc })
}

/// Approximate bytes of the commit log in a piece, unless the option `partitionBytes` is given.
pub const PIECE_BYTES: u64 = 256 << 20;
/// Maximum number of tasks per core. If there are more tasks, pieces become up to `LARGEST` times larger, because
/// starting a Python worker takes long.
const TASKS_PER_CORE: u64 = 4;
const LARGEST: u64 = 4;

/// Limits for cutting a read into pieces. `None` means no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cut {
    /// Minimum number of pieces, as far as the log can be cut.
    pub least: Option<u64>,
    /// Approximate bytes of a piece.
    pub bytes: Option<u64>,
    /// Number of cores that run Python workers; `None` if tasks need no Python worker, or if the number is unknown.
    pub worker_cores: Option<u64>,
}

impl Cut {
    /// Cuts a read into pieces. `plan` returns the pieces for a given number of bytes per piece.
    ///
    /// # Errors
    /// See `plan`.
    pub fn pieces<P: Borrow<Piece>>(self, plan: impl Fn(u64) -> Result<Vec<P>>) -> Result<Vec<P>> {
        let len = |piece: &P| piece.borrow().end.saturating_sub(piece.borrow().from);
        let plan = |bytes| plan(bytes).map(|pieces| pieces.into_iter().filter(|p| len(p) > 0).collect::<Vec<_>>());
        let mut bytes = self.bytes.unwrap_or(PIECE_BYTES);
        let mut pieces = plan(bytes)?;
        // a size that the user asked for is kept
        if let (Some(cores), None) = (self.worker_cores, self.bytes) {
            let times = (pieces.len() as u64).div_ceil(TASKS_PER_CORE * cores.max(1)).min(LARGEST);
            if times > 1 {
                pieces = plan(times * bytes)?;
            }
        }
        let least = self.least.unwrap_or(1);
        // starting from the bytes that are read saves many halvings of a small store
        bytes = bytes.min(pieces.iter().map(len).sum());
        while (pieces.len() as u64) < least && bytes > 1 {
            // pieces end at files and records, so scaling once may not give enough pieces; each step halves at least
            let scaled = u128::from(bytes) * pieces.len() as u128 / u128::from(least);
            bytes = (bytes / 2).min(scaled as u64).max(1);
            pieces = plan(bytes)?;
        }
        Ok(pieces)
    }
}

/// First byte of a serialized piece. A worker of another release refuses the piece instead of misreading it.
const VERSION: u8 = 5;

/// Serializes the JSON of a piece.
pub fn encode(piece: &Value) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(piece.to_string().as_bytes());
    bytes
}

/// Parses a serialized piece into JSON.
///
/// # Errors
/// Bytes of another release, or bytes that are not a piece.
pub fn decode(bytes: &[u8]) -> Result<Value> {
    // driver and executors may have different releases installed
    match bytes.split_first() {
        Some((&VERSION, text)) => serde_json::from_slice(text).map_err(malformed_piece),
        Some((version, _)) => {
            let text =
                format!("piece: expected version {VERSION}, got {version}; driver and executors need one release");
            Err(Error::argument(text))
        }
        None => Err(Error::argument("piece: expected bytes, got none")),
    }
}

/// Returns the error for bytes that are not a piece of the expected kind.
pub fn malformed_piece(error: serde_json::Error) -> Error {
    Error::argument(format!("piece: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::piece::TopicPiece;

    #[test]
    fn a_piece_comes_back_from_its_bytes_and_one_of_another_release_is_refused() {
        for way in [Way::Log, Way::Queue] {
            let piece = Piece { way, from: 5, end: u64::MAX, verify_crc: true };
            for broker in [None, Some(("a".to_owned(), "/data/a".to_owned()))] {
                let piece = StorePiece { piece, broker, hosts: vec!["host-1".to_owned()] };
                let mut bytes = piece.to_bytes();
                assert_eq!(StorePiece::of_bytes(&bytes).expect("a piece"), piece);
                assert_eq!(hosts_of(&bytes).expect("hosts"), ["host-1"]);
                bytes[0] = 1;
                let error = StorePiece::of_bytes(&bytes).expect_err("another release").to_string();
                assert!(error.starts_with("piece: expected version 5, got 1"), "{error}");
            }
        }
        let of_topic =
            TopicPiece { address: None, ranges: Vec::new(), goes_on: false, log: None, copy: None }.to_bytes();
        assert_eq!(hosts_of(&of_topic).expect("none"), [""; 0]);
        assert!(hosts_of(b"").is_err());
        for bytes in [&b""[..], b"\x05", b"\x05[null]", b"\x05[[false,-1,1,false],null,[]]", &of_topic] {
            let error = StorePiece::of_bytes(bytes).expect_err("no piece of a store").to_string();
            assert!(error.starts_with("piece: "), "{error}");
        }
    }
}
