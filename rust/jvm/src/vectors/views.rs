//! Views of values: the address and the length of each value's bytes.
use rmqfast_store::scan::row::Span;
use rmqfast_store::scan::text_columns::lossy;
use std::cell::Cell;

/// Maximum bytes of `side` to keep for the next batch. A larger buffer is freed.
const KEPT: usize = 8 << 20;
const NULL: i32 = -1;

/// An address and a length for each value. A length of -1 means null. Values that cannot be used in place are copied
/// to `side`. Since `side` may move while it grows, the addresses of its values are stored as `-1 - position` until
/// [`seal`](Self::seal).
#[derive(Debug, Default)]
pub(super) struct Views {
    addresses: Vec<i64>,
    lengths: Vec<i32>,
    /// Bytes of copied or decompressed values.
    pub(super) side: Vec<u8>,
}

/// The view of a value, which may be used for several rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct View(i64, i32);

impl Views {
    pub(super) fn clear(&mut self) {
        self.addresses.clear();
        self.lengths.clear();
        self.side.clear();
        // one huge body must not occupy memory until the task ends
        self.side.shrink_to(KEPT);
    }

    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    #[inline]
    pub(super) fn push(&mut self, view: View) {
        self.addresses.push(view.0);
        self.lengths.push(view.1);
    }

    pub(super) fn push_null(&mut self) {
        self.push(View(0, NULL));
    }

    /// Appends a value without a copy. The caller must not move `bytes` before the batch is filled again.
    #[inline]
    pub(super) fn push_stored(&mut self, bytes: &[u8]) {
        self.push(View(bytes.as_ptr() as i64, bytes.len() as i32));
    }

    /// Appends a string. Valid UTF-8 is used in place; otherwise the string is copied, with U+FFFD for invalid bytes.
    #[inline]
    pub(super) fn push_text(&mut self, bytes: &[u8]) {
        // Spark does not check that strings are valid UTF-8
        if bytes.is_ascii() || std::str::from_utf8(bytes).is_ok() {
            return self.push_stored(bytes);
        }
        let start = self.side.len();
        self.side.extend_from_slice(&lossy(bytes));
        self.push_side(start);
    }

    /// Appends a part of the block, or null for an absent part. `ascii` says that the part is known to be ASCII.
    #[inline]
    pub(super) fn push_span(&mut self, block: &[u8], span: Span, ascii: bool) {
        match span.of(block) {
            Some(bytes) if ascii => self.push_stored(bytes),
            Some(bytes) => self.push_text(bytes),
            None => self.push_null(),
        }
    }

    /// Appends the value that was written to `side` from `start` on.
    #[inline]
    pub(super) fn push_side(&mut self, start: usize) {
        let view = self.side_view(start);
        self.push(view);
    }

    pub(super) fn side_view(&self, start: usize) -> View {
        // negative, to distinguish it from an address
        View(-1 - start as i64, (self.side.len() - start) as i32)
    }

    /// Replaces positions in `side` by addresses, and appends the addresses of both arrays.
    pub(super) fn seal(&mut self, addresses: &mut Vec<i64>) {
        if !self.side.is_empty() {
            let side = self.side.as_ptr() as i64;
            for address in self.addresses.iter_mut().filter(|address| **address < 0) {
                // undoes `side_view`: position p was stored as -1 - p
                *address = side + (-1 - *address);
            }
        }
        addresses.extend([self.addresses.as_ptr() as i64, self.lengths.as_ptr() as i64]);
    }

    /// Returns the bytes of a value, or `None` for null. Must be called after [`seal`](Self::seal).
    #[inline]
    pub(super) fn get<'a>(&'a self, index: usize, memory: &Memory<'a>) -> Option<&'a [u8]> {
        let (address, length) = (self.addresses[index], usize::try_from(self.lengths[index]).ok()?);
        Some(within(&self.side, address, length).unwrap_or_else(|| memory.bytes(address, length)))
    }

    pub(super) fn size(&self, index: usize) -> usize {
        self.lengths[index].max(0) as usize
    }
}

/// The blocks that contain the values. They do not move until the batch is filled again.
pub struct Memory<'a> {
    blocks: Vec<&'a [u8]>,
    /// Index of the block in which the last value was found. The next value is usually in the same block.
    last: Cell<usize>,
}

impl<'a> Memory<'a> {
    pub fn new(blocks: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self { blocks: blocks.into_iter().collect(), last: Cell::new(0) }
    }

    /// Returns the bytes of a value.
    ///
    /// # Panics
    /// If the address is in none of the blocks, which is a bug.
    #[inline]
    pub(super) fn bytes(&self, address: i64, length: usize) -> &'a [u8] {
        // an empty value may have any address
        if length == 0 {
            return &[];
        }
        let last = self.blocks.get(self.last.get()).copied().unwrap_or_default();
        within(last, address, length).unwrap_or_else(|| self.search(address, length))
    }

    #[cold]
    fn search(&self, address: i64, length: usize) -> &'a [u8] {
        let hit = self.blocks.iter().enumerate().find_map(|(n, block)| Some((n, within(block, address, length)?)));
        let Some((block, bytes)) = hit else { panic!("a view of {length} bytes points outside of its blocks") };
        self.last.set(block);
        bytes
    }
}

/// Returns the bytes of a value if they are inside `block`, otherwise `None`.
#[inline]
pub(super) fn within(block: &[u8], address: i64, length: usize) -> Option<&[u8]> {
    let start = (address as usize).wrapping_sub(block.as_ptr() as usize);
    block.get(start..start.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Position of each value within the bytes it was taken from, or in the side buffer.
    fn places(views: &Views, base: &[u8]) -> Vec<(i64, i32)> {
        let base = base.as_ptr() as i64;
        views.addresses.iter().zip(&views.lengths).map(|(address, len)| (address - base, *len)).collect()
    }

    #[test]
    fn text_stands_where_it_is_and_what_is_no_utf8_is_repaired_aside() {
        let block = "tag\u{e9}\u{ff}".as_bytes().to_vec();
        let broken = [b"abc", &[0xFF][..]].concat();
        let mut views = Views::default();
        views.push_text(&block[0..3]);
        views.push_text(&block[3..5]);
        views.push_null();
        views.push_text(&broken);
        let mut sealed = Vec::new();
        views.seal(&mut sealed);
        assert_eq!(sealed, [views.addresses.as_ptr() as i64, views.lengths.as_ptr() as i64]);
        assert_eq!(places(&views, &block)[..2], [(0, 3), (3, 2)]);
        assert_eq!(views.lengths[2], -1);
        assert_eq!(views.side, "abc\u{fffd}".as_bytes());
        assert_eq!(places(&views, &views.side.clone())[3].1, 6);
        assert_eq!(views.addresses[3], views.side.as_ptr() as i64);
    }

    #[test]
    fn views_of_the_side_hold_after_it_moved() {
        let mut views = Views::default();
        for n in 0..1000 {
            let start = views.side.len();
            views.side.extend_from_slice(format!("value {n}").as_bytes());
            views.push_side(start);
        }
        views.seal(&mut Vec::new());
        let side = views.side.as_ptr() as i64;
        let at = (views.addresses[999] - side) as usize;
        assert_eq!(&views.side[at..at + views.lengths[999] as usize], b"value 999");
        views.clear();
        assert_eq!((views.len(), views.side.len()), (0, 0));
    }

    #[test]
    fn a_view_is_found_in_its_block() {
        let blocks = [b"first".to_vec(), b"the second".to_vec()];
        let memory = Memory::new(blocks.iter().map(Vec::as_slice));
        let view =
            |block: usize, from: usize, to: usize| memory.bytes(blocks[block][from..].as_ptr() as i64, to - from);
        assert_eq!(view(1, 4, 10), b"second");
        assert_eq!(view(0, 0, 5), b"first");
        assert_eq!(view(1, 0, 3), b"the");
        assert_eq!(memory.bytes(7, 0), b"");
    }

    #[test]
    #[should_panic(expected = "a view of 6 bytes points outside of its blocks")]
    fn a_view_beyond_its_block_is_a_defect() {
        let block = b"first";
        Memory::new([&block[..]]).bytes(block.as_ptr() as i64, 6);
    }
}
