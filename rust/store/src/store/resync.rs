//! Finds the next valid record behind damage, by its magic code, its lengths, and the physical offset in it.
use super::commit_log::{CommitLog, find_fault};
use crate::Result;
use crate::file::Segment;
use crate::format::message::{BLANK_MAGIC, Item, Layout, MAGIC_V1};
use memchr::memchr2_iter;

/// Bytes of the first window. The next record is usually near, so windows start small and grow to `STEP`.
const FIRST_STEP: usize = 8 << 10;
const STEP: usize = 1 << 20;
/// Overlap of two windows in bytes. It has room for the magic code and for the size of the record, which are four
/// bytes each.
const OVERLAP: usize = 8;
/// Bytes of a record that hold its lengths, except for the lengths of topic and properties.
const HEAD_LEN: usize = 128;

#[derive(Debug, PartialEq, Eq)]
pub enum Resync {
    /// A valid record or a blank record was found. Holds its position in the file.
    At(u64),
    /// Only records of another file follow, up to a blank record at the end of the file. The blank record also
    /// belongs to the other file.
    OtherFile,
    /// No valid record follows. Holds the end of the last nonzero byte.
    Nowhere(u64),
}

pub fn resync(log: &CommitLog, index: usize, segment: &mut Segment, from: u64) -> Result<Resync> {
    let file = &log.segments().files()[index];
    let (mut written, mut other_places) = (from, OtherPlaces::default());
    let mut at = from;
    let mut step = FIRST_STEP;
    let end = segment.end_of_data(from, file.len);
    while at < end {
        // A hole of a sparse file cannot hold a record, so the search skips it.
        at = segment.next_data(at, file.len).saturating_sub(OVERLAP as u64).max(at);
        let rest = file.len.saturating_sub(at);
        let window = segment.window(at, rest.min((step + OVERLAP) as u64) as usize)?.to_vec();
        if window.is_empty() {
            break;
        }
        for candidate in candidates(&window).map(|candidate| at + candidate as u64) {
            match Start::read(segment, candidate, file.base, file.len)? {
                // The walk has already tried this position.
                Start::Record | Start::Blank if candidate <= from => {}
                Start::Blank if other_places.lead_to(candidate, from) => return Ok(Resync::OtherFile),
                Start::Record | Start::Blank => return Ok(Resync::At(candidate)),
                Start::OtherPlace(end) => other_places.add(candidate, end),
                Start::None => {}
            }
        }
        if let Some(last) = window.iter().rposition(|b| *b != 0) {
            // Damage ends at the last byte that is not zero. Nothing was written behind it.
            written = written.max(at + last as u64 + 1);
        }
        at += step as u64;
        step = (2 * step).min(STEP);
    }
    Ok(Resync::Nowhere(written))
}

/// Returns the positions at which a record may begin, four bytes before a magic code of V1, V2 or a blank.
fn candidates(window: &[u8]) -> impl Iterator<Item = usize> {
    let (message, blank) = (MAGIC_V1.to_be_bytes(), BLANK_MAGIC.to_be_bytes());
    memchr2_iter(message[0], blank[0], window).filter_map(move |i| {
        let magic: &[u8; 4] = window.get(i..)?.first_chunk()?;
        (magic[..3] == message[..3] || *magic == blank).then(|| i.checked_sub(4)).flatten()
    })
}

/// Returns whether a valid record, or the blank record at the end of the file, starts at position `at`. `len` is the
/// length of the file when it was listed; bytes behind it are not read.
pub fn is_start(segment: &Segment, at: u64, base: u64, len: u64) -> Result<bool> {
    Ok(matches!(Start::read(segment, at, base, len)?, Start::Record | Start::Blank))
}

enum Start {
    Record,
    Blank,
    /// A record that contains another offset than its own. Holds the position of its end.
    OtherPlace(u64),
    None,
}

impl Start {
    fn read(segment: &Segment, at: u64, base: u64, len: u64) -> Result<Self> {
        let mut bytes = Vec::new();
        segment.read_into(at, len.saturating_sub(at).min(HEAD_LEN as u64) as usize, &mut bytes)?;
        let is_here = is_at(&bytes, base + at);
        let is_within = |size: usize| at + size as u64 <= len;
        let mut item = Layout::decode(&bytes);
        // The offset is checked before the rest is read, because garbage hardly ever has the right offset.
        if let Ok(Item::Partial(needed)) = item
            && is_here
            && is_within(needed)
        {
            bytes.clear();
            segment.read_into(at, needed, &mut bytes)?;
            item = Layout::decode(&bytes);
        }
        Ok(match item {
            Ok(Item::Blank(size)) if at + size as u64 == len => Self::Blank,
            Ok(Item::Message(layout)) if !is_here => Self::OtherPlace(at + u64::from(layout.total)),
            Ok(Item::Message(layout)) if find_fault(&bytes, layout, base + at, true).is_none() => Self::Record,
            Ok(Item::Partial(needed)) if !is_here && is_within(needed) => Self::OtherPlace(at + needed as u64),
            _ => Self::None,
        })
    }
}

/// The records with wrong offsets that were found behind damage.
#[derive(Default)]
struct OtherPlaces {
    first: Option<(u64, u64)>,
    count: usize,
}

impl OtherPlaces {
    fn add(&mut self, start: u64, end: u64) {
        self.first.get_or_insert((start, end));
        self.count += 1;
    }

    /// Returns whether these records come before the blank record. Does not count the last record of the file if its
    /// offset has one flipped bit.
    fn lead_to(&self, blank: u64, damaged: u64) -> bool {
        self.count > 1 || self.first.is_some_and(|first| first != (damaged, blank))
    }
}

fn is_at(head: &[u8], offset: u64) -> bool {
    head.get(28..36).is_some_and(|stored| stored == offset.to_be_bytes())
}

/// Returns the offset of the first valid record in file `index` at or behind `target`.
pub fn record_behind(log: &CommitLog, index: usize, target: u64) -> Result<Option<u64>> {
    let base = log.segments().files()[index].base;
    let mut segment = log.open(index)?;
    // The search skips its own start, so it starts one byte before the target.
    let from = (target - base).saturating_sub(1);
    Ok(match resync(log, index, &mut segment, from)? {
        Resync::At(at) => Some(base + at),
        Resync::OtherFile | Resync::Nowhere(_) => None,
    })
}
