//! A selected record. Holds the positions, in a block, of the parts that columns and filters need.
use super::unchecked::{LANES, masks};
use crate::format::message::{Layout, Message};
use crate::format::properties::{NAME_END, PROPERTY_END};

/// A range of bytes in the block. Length 0 means that the property is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub at: u32,
    pub len: u32,
}

impl Span {
    /// Returns the bytes, or `None` for an absent property. A stored property is never empty.
    #[inline]
    pub fn of(self, bytes: &[u8]) -> Option<&[u8]> {
        if self.len == 0 { None } else { bytes.get(self.at as usize..(self.at + self.len) as usize) }
    }
}

/// A record in a block.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub at: u32,
    pub layout: Layout,
    /// Tags of the message. Like `keys` and `uniq_key`, empty until [`find_properties`](Self::find_properties) is
    /// called.
    pub tags: Span,
    pub keys: Span,
    pub uniq_key: Span,
    /// Whether the properties were parsed and are all ASCII. If so, they need no check for UTF-8.
    pub ascii: bool,
}

impl Row {
    /// Creates a row for the record at `at`. Its properties are not parsed yet.
    #[inline]
    pub fn new(at: u32, layout: Layout) -> Self {
        let none = Span::default();
        Self { at, layout, tags: none, keys: none, uniq_key: none, ascii: false }
    }

    #[inline]
    pub fn message<'a>(&self, block: &'a [u8]) -> Option<Message<'a>> {
        Message::new(block.get(self.at as usize..)?, self.layout)
    }

    #[inline]
    pub fn properties(&self) -> Span {
        let len = u32::from(self.layout.properties_len);
        Span { at: self.at + self.layout.total - len, len }
    }

    /// Finds the properties that have columns of their own. Of a repeated name the last value counts.
    #[inline]
    pub fn find_properties(&mut self, block: &[u8]) {
        self.ascii = each_property(block, self.properties(), |name, value| match name.of(block) {
            Some(b"TAGS") => self.tags = value,
            Some(b"KEYS") => self.keys = value,
            Some(b"UNIQ_KEY") => self.uniq_key = value,
            _ => {}
        });
    }
}

/// Calls `visit` with the name and value of each stored property. Returns whether all their bytes are ASCII.
///
/// Gives the same result as [`properties::iter`](crate::format::properties::iter), but faster, for the hot loops. A test compares the two.
#[inline]
pub fn each_property(block: &[u8], properties: Span, mut visit: impl FnMut(Span, Span)) -> bool {
    let stored = properties.of(block).unwrap_or_default();
    let span = |from: usize, to: usize| Span { at: properties.at + from as u32, len: (to - from) as u32 };
    let mut part = 0;
    let mut name_end = None;
    each_mark(stored, |mark| match stored.get(mark) {
        Some(&NAME_END) => {
            // Only the first mark ends the name, since a value may contain further ones.
            name_end.get_or_insert(mark);
        }
        // The last property may lack its end mark, so the end of the string counts as a mark.
        Some(&PROPERTY_END) | None => {
            if let Some(name_end) = name_end.take()
                && name_end > part
                // Java's parser skips empty names and values as well.
                && name_end + 1 < mark
            {
                visit(span(part, name_end), span(name_end + 1, mark));
            }
            part = mark + 1;
        }
        Some(_) => {}
    })
}

/// Calls `at_mark` with the position of each byte below 3, which includes both separators, and at the end with the
/// length of `bytes`. Returns whether all bytes are ASCII.
///
/// Converts 64 bytes to one bit mask, so that the loop over the marks has few mispredicted branches.
#[inline]
fn each_mark(bytes: &[u8], mut at_mark: impl FnMut(usize)) -> bool {
    let (chunks, rest) = bytes.as_chunks::<LANES>();
    let mut above = 0;
    for (block, chunks) in chunks.chunks(64 / LANES).enumerate() {
        let mut marks = 0_u64;
        for (i, chunk) in chunks.iter().enumerate() {
            let (low, high) = masks(chunk);
            marks |= u64::from(low) << (LANES * i);
            above |= high;
        }
        while marks != 0 {
            at_mark(64 * block + marks.trailing_zeros() as usize);
            // Clear the lowest bit, which belongs to the mark just visited.
            marks &= marks - 1;
        }
    }
    // Pad the rest with a byte that is no mark.
    let mut last = [3; LANES];
    last[..rest.len()].copy_from_slice(rest);
    let (mut marks, high) = masks(&last);
    while marks != 0 {
        at_mark(LANES * chunks.len() + marks.trailing_zeros() as usize);
        marks &= marks - 1;
    }
    at_mark(bytes.len());
    (above | high) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::properties;
    use proptest::prelude::*;

    fn row_of(properties: &[u8]) -> Row {
        let layout = Layout {
            total: properties.len() as u32,
            sys_flag: 0,
            body: 0,
            body_len: 0,
            topic: 0,
            topic_len: 0,
            properties_len: properties.len() as u16,
        };
        Row::new(0, layout)
    }

    proptest! {
        #[test]
        fn the_fast_look_finds_what_the_slow_one_finds(
            properties in "(TAGS|KEYS|UNIQ_KEY|a|\u{0}|\u{1}|\u{2}|\u{3}|é|x){0,30}"
        ) {
            let mut row = row_of(properties.as_bytes());
            row.find_properties(properties.as_bytes());
            let fast = [row.tags, row.keys, row.uniq_key].map(|s| s.of(properties.as_bytes()));
            let expected = ["TAGS", "KEYS", "UNIQ_KEY"].map(|n| properties::get(properties.as_bytes(), n));
            prop_assert_eq!(fast, expected);
            prop_assert_eq!(row.ascii, properties.is_ascii());
            let mut pairs = Vec::new();
            let bytes = |span: Span| span.of(properties.as_bytes()).unwrap_or_default();
            each_property(properties.as_bytes(), row.properties(), |name, value| pairs.push((bytes(name), bytes(value))));
            prop_assert_eq!(pairs, properties::iter(properties.as_bytes()).collect::<Vec<_>>());
        }
    }
}
