//! Guesses the number of slots and entries of an index file, since its header does not contain them.
use super::view::IndexView;
use super::{
    DEFAULT_ENTRY_COUNT, DEFAULT_SLOT_COUNT, HEADER_SIZE, IndexHeader, SLOT_SIZE, file_size, slot_of, slot_position,
};

/// Number of entries that are checked against a guess.
const SAMPLES: u32 = 1000;
/// Maximum number of guesses that are checked in full. Further guesses, which only a constructed file has, are
/// ignored.
const MAX_CANDIDATES: usize = 16;

/// Returns the number of slots and of entries. A file of the default size has the default numbers. For another size,
/// returns the only numbers that fit both the length and the content. `None` for a damaged file, and for a file of
/// another size without entries, since many numbers fit it.
pub fn guess_geometry(file_len: u64, bytes: &[u8]) -> Option<(u32, u32)> {
    if file_len == file_size(DEFAULT_SLOT_COUNT, DEFAULT_ENTRY_COUNT) {
        return Some((DEFAULT_SLOT_COUNT, DEFAULT_ENTRY_COUNT));
    }
    let bytes = bytes.get(..usize::try_from(file_len).ok()?)?;
    let words = bytes.len().checked_sub(HEADER_SIZE).filter(|rest| rest % SLOT_SIZE == 0)? / SLOT_SIZE;
    let header = IndexHeader::decode(bytes).filter(|header| header.index_count > 1)?;
    // An entry is as long as 5 slots, so each number of entries leaves a whole number of slots.
    let views = (header.index_count.cast_unsigned() as usize..=words / 5).filter_map(|entries| {
        let (slots, entries) = ((words - 5 * entries).try_into().ok()?, entries.try_into().ok()?);
        Some((IndexView::new(bytes, slots, entries).ok()?, entries))
    });
    // The cheap test first, since nearly all splits fail it.
    let mut fitting = views.filter(|(view, _)| ends_fit(view)).take(MAX_CANDIDATES).filter(|(view, _)| all_fits(view));
    let (view, entries) = fitting.next()?;
    // If two splits fit, neither is certain.
    fitting.next().is_none().then_some((view.slot_count, entries))
}

/// Returns whether the first and the last entry fit these numbers of slots and entries. This cheap test rejects
/// nearly all wrong guesses.
fn ends_fit(view: &IndexView) -> bool {
    let header = view.header;
    [(1, header.begin_phy_offset), (header.index_count.cast_unsigned() - 1, header.end_phy_offset)]
        .iter()
        .all(|(n, offset)| view.entry(*n).is_some_and(|e| e.physical_offset == *offset) && is_in_its_chain(view, *n))
}

/// Returns whether all slots and a sample of the entries fit these numbers of slots and entries.
fn all_fits(view: &IndexView) -> bool {
    let last = view.header.index_count.cast_unsigned() - 1;
    (1..=last).step_by((last / SAMPLES + 1) as usize).all(|n| is_in_its_chain(view, n))
        && used_slots(view) == Some(view.header.hash_slot_count)
}

/// Returns whether the slot of entry `n` points to `n` or a later entry, and the entry's `previous` is an earlier
/// entry.
fn is_in_its_chain(view: &IndexView, n: u32) -> bool {
    let Some(entry) = view.entry(n) else { return false };
    let newest = view.newest(slot_of(entry.key_hash, view.slot_count));
    entry.key_hash >= 0 && (0..n.cast_signed()).contains(&entry.previous) && newest.is_some_and(|newest| newest >= n)
}

/// Returns the number of slots in use. Returns `None` if a slot points to an unwritten entry.
fn used_slots(view: &IndexView) -> Option<i32> {
    let (slots, _) = view.bytes[HEADER_SIZE..slot_position(view.slot_count)].as_chunks();
    let numbers = slots.iter().map(|slot| i32::from_be_bytes(*slot));
    let mut used = 0;
    for number in numbers.filter(|number| *number != 0) {
        if number < 0 || number >= view.header.index_count {
            return None;
        }
        used += 1;
    }
    Some(used)
}
