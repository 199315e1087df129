//! A selected record: where its parts are in a block, as far as the columns and filters need them.
use crate::format::message::{Layout, Message};
use crate::format::properties::{NAME_END, PROPERTY_END};
use memchr::memchr2_iter;

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
}

impl Row {
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
        for mark in memchr2_iter(NAME_END, PROPERTY_END, properties).chain(std::iter::once(properties.len())) {
            if properties.get(mark) == Some(&NAME_END) {
                name_end.get_or_insert(mark);
                continue;
            }
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
    }
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
        Row { at: 0, layout, tags: Span::default(), keys: Span::default(), uniq_key: Span::default() }
    }

    proptest! {
        #[test]
        fn the_fast_look_finds_what_the_slow_one_finds(
            properties in "(TAGS|KEYS|UNIQ_KEY|a|\u{1}|\u{2}|x){0,30}"
        ) {
            let mut row = row_of(properties.as_bytes());
            row.find_properties(properties.as_bytes());
            let found = [row.tags, row.keys, row.uniq_key].map(|s| s.of(properties.as_bytes()));
            let expected = ["TAGS", "KEYS", "UNIQ_KEY"].map(|n| properties::get(properties.as_bytes(), n));
            prop_assert_eq!(found, expected);
        }
    }
}
