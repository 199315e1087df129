//! A selected record: where its parts are in a block, as far as the columns and filters need them.
use crate::format::message::{Layout, Message};
use crate::format::properties::{NAME_END, PROPERTY_END};

/// A part of the block's bytes; length 0 for a property that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Position in the block.
    pub at: u32,
    /// Bytes.
    pub len: u32,
}

impl Span {
    /// The bytes, or `None` for an absent property: a stored one is never empty.
    #[inline]
    pub fn of(self, bytes: &[u8]) -> Option<&[u8]> {
        if self.len == 0 { None } else { bytes.get(self.at as usize..(self.at + self.len) as usize) }
    }
}

/// A record that passed the filters.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its position in the block.
    pub at: u32,
    /// Its parts.
    pub layout: Layout,
    /// `TAGS`, where it was looked for.
    pub tags: Span,
    /// `KEYS`.
    pub keys: Span,
    /// `UNIQ_KEY`.
    pub uniq_key: Span,
    /// Whether the properties were looked at and are all ASCII, and so surely UTF-8.
    pub ascii: bool,
}

impl Row {
    /// The record at `at`, its properties not looked at yet.
    #[inline]
    pub fn new(at: u32, layout: Layout) -> Self {
        let none = Span::default();
        Self { at, layout, tags: none, keys: none, uniq_key: none, ascii: false }
    }

    /// The record within `block`.
    #[inline]
    pub fn message<'a>(&self, block: &'a [u8]) -> Option<Message<'a>> {
        Message::new(block.get(self.at as usize..)?, self.layout)
    }

    /// Looks for the three properties that are columns of their own; of a repeated one the last wins.
    #[inline]
    pub fn find_properties(&mut self, block: &[u8]) {
        let end = (self.at + self.layout.total) as usize;
        let start = end - self.layout.properties_len as usize;
        let properties = block.get(start..end).unwrap_or_default();
        let mut part = 0;
        let mut name_end = None;
        let ascii = each_mark(properties, |mark| match properties.get(mark) {
            Some(&NAME_END) => {
                name_end.get_or_insert(mark);
            }
            Some(&PROPERTY_END) | None => {
                if let Some(name_end) = name_end.take()
                    && name_end + 1 < mark
                {
                    let value = Span { at: (start + name_end + 1) as u32, len: (mark - name_end - 1) as u32 };
                    match &properties[part..name_end] {
                        b"TAGS" => self.tags = value,
                        b"KEYS" => self.keys = value,
                        b"UNIQ_KEY" => self.uniq_key = value,
                        _ => {}
                    }
                }
                part = mark + 1;
            }
            Some(_) => {}
        });
        self.ascii = ascii;
    }
}

/// Calls `at_mark` with the position of each byte below 3 and then with the length; tells whether all bytes are ASCII.
///
/// 64 bytes at a time become one mask, so that the loop over the marks is hardly ever mispredicted.
#[inline]
fn each_mark(bytes: &[u8], mut at_mark: impl FnMut(usize)) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut seen = 0;
    for (block, words) in words.chunks(8).enumerate() {
        let mut marks = 0_u64;
        for (i, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            seen |= word;
            marks |= marks_of(word) << (8 * i);
        }
        while marks != 0 {
            at_mark(64 * block + marks.trailing_zeros() as usize);
            marks &= marks - 1;
        }
    }
    for (i, byte) in rest.iter().enumerate() {
        seen |= u64::from(*byte);
        if *byte < 3 {
            at_mark(8 * words.len() + i);
        }
    }
    at_mark(bytes.len());
    seen & TOP == 0
}

const TOP: u64 = 0x8080_8080_8080_8080;

/// One bit for each byte of the word that is below 3, the first byte lowest. Adding 0x7D sets the top bit of every ASCII
/// byte from 3 on; the product moves the eight top bits next to each other.
#[inline]
fn marks_of(word: u64) -> u64 {
    let below = !(((word & !TOP) + 0x7D7D_7D7D_7D7D_7D7D) | word) & TOP;
    below.wrapping_mul(0x0002_0408_1020_4081) >> 56
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
            let found = [row.tags, row.keys, row.uniq_key].map(|s| s.of(properties.as_bytes()));
            let expected = ["TAGS", "KEYS", "UNIQ_KEY"].map(|n| properties::get(properties.as_bytes(), n));
            prop_assert_eq!(found, expected);
            prop_assert_eq!(row.ascii, properties.is_ascii());
        }
    }
}
