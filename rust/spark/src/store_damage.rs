//! What of a piece of a store cannot be read: what is gone since the read was planned, and what is damaged.
use rmqfast_store::scan::Piece;
use rmqfast_store::store::damage::DamageLog;
use rmqfast_store::store::{Damage, MessageStore};
use std::path::Path;

const MOST_LISTED: usize = 20;

/// The part of a piece that the log still holds, and what it lost: a broker deletes its oldest files while a job waits.
pub fn held(store: &MessageStore, piece: Piece) -> (Piece, Vec<Damage>) {
    let segments = store.log().segments();
    let (first, last) = (segments.start(), segments.end());
    // clamped, so that a piece that is wholly gone is empty and not backwards
    let from = piece.from.max(first).min(piece.end);
    let end = piece.end.min(last).max(from);
    let reason = format!("the log held this when the read was planned, it now is {first} to {last}");
    let lost = [(piece.from, from - piece.from), (end, piece.end - end)].into_iter().filter(|(_, length)| *length > 0);
    let file = store.root();
    let damage = lost.map(|(offset, length)| Damage { offset, length, reason: reason.clone(), file: file.into() });
    (Piece { from, end, ..piece }, damage.collect())
}

/// What a task says of the places of `piece` that are lost or damaged; `None` where there are none.
pub fn words(path: &Path, piece: Piece, lost: &[Damage], found: &DamageLog) -> Option<String> {
    let damage: Vec<&Damage> = lost.iter().chain(found.entries()).collect();
    if damage.is_empty() {
        return None;
    }
    let mut places: Vec<String> = damage.iter().take(MOST_LISTED).map(ToString::to_string).collect();
    let all = damage.len() as u64 + found.more();
    if all > places.len() as u64 {
        places.push(format!("and {} more", all - places.len() as u64));
    }
    let at = format!("store {}, commit log {} to {}", path.display(), piece.from, piece.end);
    Some(format!("{at}: {all} damaged places: {}", places.join("; ")))
}

/// The same as an error.
pub fn refusal(words: &str) -> String {
    format!("{words}; on_damage=\"warn\" (failOnDataLoss=false) reads what is left")
}
