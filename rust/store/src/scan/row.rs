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
/// Converts 64 bytes to bit masks, so that the loop over the marks has few mispredicted branches.
#[inline]
pub fn each_property(block: &[u8], properties: Span, mut visit: impl FnMut(Span, Span)) -> bool {
    let stored = properties.of(block).unwrap_or_default();
    let span = |from: usize, to: usize| Span { at: properties.at + from as u32, len: (to - from) as u32 };
    let (mut part, mut name_end, mut above) = (0, None, 0);
    // One place calls `visit`, so that the compiler puts its code there.
    for from in (0..=stored.len()).step_by(64) {
        let rest = &stored[from..];
        let (mut marks, mut high) = match block.get(properties.at as usize + from..).and_then(|b| b.first_chunk()) {
            // Usually there are bytes behind the properties, so that none need to be copied.
            Some(chunk) => wide_masks(chunk),
            None => {
                let mut chunk = [0; 64];
                let len = rest.len().min(64);
                chunk[..len].copy_from_slice(&rest[..len]);
                wide_masks(&chunk)
            }
        };
        if rest.len() < 64 {
            // The last property may lack its end mark, so the end of the string counts as a mark.
            let end = 1 << rest.len();
            (marks, high) = (marks & (end - 1) | end, high & (end - 1));
        }
        above |= high;
        while marks != 0 {
            let mark = from + marks.trailing_zeros() as usize;
            // Clear the lowest bit, which belongs to this mark.
            marks &= marks - 1;
            match stored.get(mark) {
                Some(&NAME_END) => {
                    // Only the first mark ends the name, since a value may contain further ones.
                    name_end.get_or_insert(mark);
                }
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
            }
        }
    }
    above == 0
}

/// Returns a mask of the bytes below 3, which include both separators, and a mask of the bytes that are not ASCII.
#[inline]
fn wide_masks(bytes: &[u8; 64]) -> (u64, u64) {
    let chunks = bytes.as_chunks::<LANES>().0.iter().enumerate();
    chunks.fold((0, 0), |(marks, above), (i, chunk)| {
        let (low, high) = masks(chunk);
        (marks | u64::from(low) << (LANES * i), above | u64::from(high) << (LANES * i))
    })
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
