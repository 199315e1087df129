//! Finds where the last `count` messages that match a request begin.
use super::piece::{Piece, Way};
use super::plan::Plan;
use super::request::ScanRequest;
use super::row_source::RowSource;
use crate::file::Io;
use crate::store::MessageStore;
use crate::store::resync::record_behind;
use crate::{Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of the log in the first step. Each further step goes towards the beginning of the log and is twice as long.
const FIRST_STRETCH: u64 = 1 << 20;
const MAX_STRETCH: u64 = 256 << 20;

/// Returns the physical offset of the first of the last `count` matching messages before `end`. If fewer messages
/// match, returns the offset of the first of them. Reads the log backwards in stretches, by log or by queue as the
/// plan chooses.
pub fn start_of_last(
    store: &MessageStore,
    request: &ScanRequest,
    (count, end): (usize, u64),
    interrupt: &mut dyn FnMut() -> Result<()>,
) -> Result<u64> {
    // Reopen the store, since messages may have been appended meanwhile.
    let store = store.reopen(Io::Pread)?;
    let plan = Plan::new(&store, request, None)?;
    // Only offsets are needed, so no columns.
    let request = Arc::new(ScanRequest { columns: Vec::new(), ..request.clone() });
    let (mut missing, mut first, mut behind, mut stretch) = (count, end, end, FIRST_STRETCH);
    let begin = store.log().min_offset();
    while missing > 0 && behind > begin {
        let target = behind.saturating_sub(stretch);
        stretch = (2 * stretch).min(MAX_STRETCH);
        let from = if target <= begin { begin } else { record_at_or_behind(&store, target)? };
        // No earlier record in this stretch. The next stretch is longer.
        if from >= behind {
            continue;
        }
        let pieces = plan.pieces.iter().filter_map(|piece| clip(*piece, from, behind));
        let mut source = RowSource::new(plan.sources.clone(), request.clone(), pieces);
        let mut last = VecDeque::new();
        while source.advance(interrupt)? {
            last.extend(
                source.rows().iter().filter_map(|row| row.message(source.bytes())).map(|m| m.physical_offset()),
            );
            // Keep only as many as are still missing, the last of this stretch.
            last.drain(..last.len().saturating_sub(missing));
        }
        first = last.front().map_or(first, |offset| *offset as u64);
        missing -= last.len();
        behind = from;
    }
    Ok(first)
}

fn clip(piece: Piece, from: u64, end: u64) -> Option<Piece> {
    let (from, end) = (piece.from.max(from), piece.end.min(end));
    (from < end).then_some(Piece { from, end, verify_crc: piece.verify_crc || piece.way == Way::Log, ..piece })
}

/// Returns the offset of the first record at or behind `target`. If `target` is in a gap, or no record follows in the
/// file, returns the start of the next file.
fn record_at_or_behind(store: &MessageStore, target: u64) -> Result<u64> {
    let segments = store.log().segments();
    let files = segments.files();
    let next = || files.iter().find(|file| file.base >= target).map_or(u64::MAX, |file| file.base);
    let Some(index) = segments.find(target).filter(|index| files[*index].base < target) else { return Ok(next()) };
    match record_behind(store.log(), index, target) {
        Ok(record) => Ok(record.unwrap_or_else(next)),
        // The file was removed, or is a dead link: continue with the next file.
        Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => Ok(next()),
        Err(error) => Err(error),
    }
}
