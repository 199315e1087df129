//! An index file of any bytes: every query ends, within its limit.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_store::format::index::{IndexView, file_size, guess_geometry};

const MAX: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[slots, hash, begin, span], file)) = bytes.split_first_chunk() else { return };
    let mut geometries = vec![u32::from(slots)];
    geometries.extend(guess_geometry(file.len() as u64, file).map(|(slots, _)| slots));
    for slots in geometries {
        let room = (file.len() as u64).saturating_sub(file_size(slots, 0)) / 20;
        let Ok(view) = IndexView::new(file, slots, room as u32) else { continue };
        let from = view.header().begin_timestamp.saturating_add(i64::from(begin) * 1000 - 1000);
        let mut found = Vec::new();
        let _ = view.query(i32::from(hash), from, from.saturating_add(i64::from(span) * 1000), MAX, &mut found);
        assert!(found.len() <= MAX);
    }
});
