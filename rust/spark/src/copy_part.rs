//! Where the messages of a piece stand in the copy that a mirror keeps of their broker.
use crate::store_piece;
use rmqfast_store::scan::Piece;
use serde_json::Value;
use std::path::PathBuf;

/// A stretch of a copy that holds messages of a piece's ranges, all of one topic; other pieces have the other messages of the
/// same ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPart {
    /// The directory of the copy, as every executor sees it.
    pub path: PathBuf,
    /// The stretch, and how it is read.
    pub piece: Piece,
}

/// A part as texts have it: the directory, and the piece of a store.
pub type CopyParts = (PathBuf, Value);

impl CopyPart {
    /// What [`of_parts`](Self::of_parts) takes.
    pub fn to_parts(&self) -> CopyParts {
        (self.path.clone(), store_piece::to_json(&self.piece))
    }

    /// The part of such values.
    ///
    /// # Errors
    /// No piece of a store.
    pub fn of_parts((path, piece): CopyParts) -> serde_json::Result<Self> {
        Ok(Self { path, piece: store_piece::of_json(piece)? })
    }
}
