//! Finding the next sound record behind damage: by magic, lengths, and the offset that each record carries.
use super::commit_log::{CommitLog, sound};
use crate::Result;
use crate::file::Segment;
use crate::format::message::{BLANK_MAGIC, Item, Layout, MAGIC_V1};
use memchr::memchr2_iter;

/// Bytes of the first window: the next record is near as a rule. Windows double up to the last size.
const FIRST_STEP: usize = 8 << 10;
const STEP: usize = 1 << 20;
/// A magic stands four bytes behind the start of its record: windows overlap by both.
const OVERLAP: usize = 8;
/// Bytes that tell the lengths of any record but those of topic and properties.
const HEAD_LEN: usize = 128;

/// Where reading can go on in a segment behind damage.
#[derive(Debug, PartialEq, Eq)]
pub enum Resync {
    /// A sound record or blank starts at this position of the file.
    At(u64),
    /// Records of another place follow, up to the blank that ends the file, and nothing else: the blank is of that place, too.
    OtherFile,
    /// Nothing sound follows; the last byte that is not zero ends at this position.
    Nowhere(u64),
}

/// Searches the file at `index` from position `from`.
pub fn resync(log: &CommitLog, index: usize, segment: &mut Segment, from: u64) -> Result<Resync> {
    let file = &log.segments().files()[index];
    let (mut written, mut other_places) = (from, OtherPlaces::default());
    let mut at = from;
    let mut step = FIRST_STEP;
    let end = segment.end_of_data(from, file.len);
    while at < end {
        // holes of a sparse file cannot hold a record
        at = segment.next_data(at, file.len).saturating_sub(OVERLAP as u64).max(at);
        let left = file.len.saturating_sub(at);
        let window = segment.window(at, left.min((step + OVERLAP) as u64) as usize)?.to_vec();
        if window.is_empty() {
            break;
        }
        for candidate in candidates(&window).map(|candidate| at + candidate as u64) {
            match Start::read(segment, candidate, file.base, file.len)? {
                Start::Record | Start::Blank if candidate <= from => {}
                Start::Blank if other_places.lead_to(candidate, from) => return Ok(Resync::OtherFile),
                Start::Record | Start::Blank => return Ok(Resync::At(candidate)),
                Start::OtherPlace(end) => other_places.add(candidate, end),
                Start::None => {}
            }
        }
        if let Some(last) = window.iter().rposition(|b| *b != 0) {
            // damage ends with the last byte that is not zero: behind it nothing was written
            written = written.max(at + last as u64 + 1);
        }
        at += step as u64;
        step = (2 * step).min(STEP);
    }
    Ok(Resync::Nowhere(written))
}

/// Positions whose next four bytes but four look like a magic code.
fn candidates(window: &[u8]) -> impl Iterator<Item = usize> {
    let (message, blank) = (MAGIC_V1.to_be_bytes(), BLANK_MAGIC.to_be_bytes());
    memchr2_iter(message[0], blank[0], window).filter_map(move |i| {
        let magic: &[u8; 4] = window.get(i..)?.first_chunk()?;
        (magic[..3] == message[..3] || *magic == blank).then(|| i.checked_sub(4)).flatten()
    })
}

/// Whether a sound record, or the blank that ends the file, starts at position `at`. `len` is the file's length when it was
/// listed; bytes behind it are not read, as a walk does not read them either.
pub fn is_start(segment: &Segment, at: u64, base: u64, len: u64) -> Result<bool> {
    Ok(matches!(Start::read(segment, at, base, len)?, Start::Record | Start::Blank))
}

/// A position of a file, by the thing that starts there.
enum Start {
    /// A sound record of this place.
    Record,
    /// The blank that ends the file.
    Blank,
    /// A record that says another place, and ends at this position.
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
        // The offset is looked at before the rest is read: among garbage hardly one is right.
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
            Ok(Item::Message(layout)) if sound(&bytes, layout, base + at, true).is_none() => Self::Record,
            Ok(Item::Partial(needed)) if !is_here && is_within(needed) => Self::OtherPlace(at + needed as u64),
            _ => Self::None,
        })
    }
}

/// Records of another place that were met behind damage.
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

    /// Whether they stand before a blank; not where one flipped bit in the last record of a file has changed its place.
    fn lead_to(&self, blank: u64, damaged: u64) -> bool {
        self.count > 1 || self.first.is_some_and(|first| first != (damaged, blank))
    }
}

fn is_at(head: &[u8], offset: u64) -> bool {
    head.get(28..36).is_some_and(|stored| stored == offset.to_be_bytes())
}

/// Offset of the first sound record of the file at `index` that starts at `wanted` or behind.
pub fn record_behind(log: &CommitLog, index: usize, target: u64) -> Result<Option<u64>> {
    let base = log.segments().files()[index].base;
    let mut segment = log.open(index)?;
    let from = (target - base).saturating_sub(1);
    Ok(match resync(log, index, &mut segment, from)? {
        Resync::At(at) => Some(base + at),
        Resync::OtherFile | Resync::Nowhere(_) => None,
    })
}
