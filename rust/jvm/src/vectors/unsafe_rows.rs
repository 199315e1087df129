//! Rows in the format of Spark's `UnsafeRow`, as its own code makes them of vectors.
//!
//! ```text
//! row:   a bit for each null field, in words │ a word a field: the number, or offset << 32 | length │ values, each in words
//! array: how many                            │ bits and words as those of a row, of its elements    │ values
//! map:   bytes of the array of names         │ array of names                                       │ array of values
//! ```
//!
//! All words are of 8 bytes. What is behind the end of a value is 0: Spark compares and hashes rows as bytes.
use super::memory::Memory;
use super::views::Views;
use std::ops::Range;

/// Rows that are made at once, at most: what they point to, and they, shall be in the cache of a core.
const ROWS: usize = 128;
const BYTES: usize = 256 << 10;
/// Bytes of memory that are kept for the next rows; what huge ones took beyond this is given back.
const KEPT: usize = 8 << 20;
const WORD: usize = 8;

/// Some rows of a batch, one behind the other, their memory used again for the next ones.
#[derive(Debug, Default)]
pub(super) struct UnsafeRows {
    fields: usize,
    bytes: Vec<u8>,
    /// Bytes of each row, as Java reads them.
    lengths: Vec<i32>,
    starts: Vec<usize>,
    /// Write position of each row.
    ends: Vec<usize>,
}

impl UnsafeRows {
    /// Begins rows of `fields` fields, `most` of them if that is not too many at once. `measure` adds to each what its values
    /// take behind the words of its fields. Returns how many: one at least, if there is one.
    pub(super) fn begin(&mut self, fields: usize, most: usize, measure: impl FnOnce(&mut [usize])) -> usize {
        let fixed = null_bytes(fields) + fields * WORD;
        self.fields = fields;
        let mut sizes = [fixed; ROWS];
        let sizes = &mut sizes[..most.min(ROWS)];
        measure(sizes);
        self.lengths.clear();
        self.starts.clear();
        self.ends.clear();
        let mut end = 0;
        for &size in &*sizes {
            if end > 0 && end + size > BYTES {
                break;
            }
            // Spark has an int for it
            self.lengths.push(i32::try_from(size).expect("a row of less than 2 GiB"));
            self.starts.push(end);
            self.ends.push(end + fixed);
            end += size;
        }
        if self.bytes.len() > KEPT {
            self.bytes = Vec::new();
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        for &start in &self.starts {
            self.bytes[start..start + null_bytes(fields)].fill(0);
        }
        self.starts.len()
    }

    /// Addresses of the rows and of their lengths.
    pub(super) fn addresses(&self) -> [i64; 2] {
        [self.bytes.as_ptr() as i64, self.lengths.as_ptr() as i64]
    }

    /// Writes a number for each row.
    pub(super) fn put_numbers(&mut self, field: usize, numbers: impl Iterator<Item = i64>) {
        let at = self.word(field);
        for (start, number) in self.starts.iter().zip(numbers) {
            put_word(&mut self.bytes, start + at, number);
        }
    }

    /// Writes a value for each row, from that at `from` on.
    pub(super) fn put_views(&mut self, field: usize, views: &Views, from: usize, memory: &Memory<'_>) {
        let at = self.word(field);
        for (row, (&start, end)) in self.starts.iter().zip(&mut self.ends).enumerate() {
            put_view(&mut self.bytes, start, start + at, field, end, views.get(from + row, memory));
        }
    }

    /// Writes a map for each row, of the names and values of its range of pairs.
    pub(super) fn put_maps(
        &mut self,
        field: usize,
        pairs: impl Iterator<Item = Range<usize>>,
        [names, values]: [&Views; 2],
        memory: &Memory<'_>,
    ) {
        let at = self.word(field);
        for ((row, end), pairs) in self.starts.iter().zip(&mut self.ends).zip(pairs) {
            let map = *end;
            let between = put_array(&mut self.bytes, map + WORD, names, pairs.clone(), memory);
            put_word(&mut self.bytes, map, (between - map - WORD) as i64);
            *end = put_array(&mut self.bytes, between, values, pairs, memory);
            put_word(&mut self.bytes, row + at, place(map - row, *end - map));
        }
    }

    /// Address of a field's word in a row.
    #[inline]
    fn word(&self, field: usize) -> usize {
        null_bytes(self.fields) + field * WORD
    }
}

/// Adds what the values from that at `from` on take in a row, besides the word of a field.
pub(super) fn measure(views: &Views, from: usize, sizes: &mut [usize]) {
    for (row, size) in (from..).zip(sizes) {
        *size += in_words(views.size(row));
    }
}

/// Bytes of a map of these pairs.
pub(super) fn map_size(pairs: Range<usize>, names: &Views, values: &Views) -> usize {
    let fixed = WORD + null_bytes(pairs.len()) + pairs.len() * WORD;
    let values: usize = pairs.map(|pair| in_words(names.size(pair)) + in_words(values.size(pair))).sum();
    WORD + 2 * fixed + values
}

/// Bytes of a value of `length` bytes.
fn in_words(length: usize) -> usize {
    length.next_multiple_of(WORD)
}

/// Bytes of a bit for each of so many fields.
fn null_bytes(fields: usize) -> usize {
    fields.div_ceil(64) * WORD
}

fn place(offset: usize, length: usize) -> i64 {
    (offset as i64) << 32 | length as i64
}

fn put_word(bytes: &mut [u8], at: usize, word: i64) {
    bytes[at..at + WORD].copy_from_slice(&word.to_ne_bytes());
}

/// Writes an array at `start`; returns its end.
fn put_array(bytes: &mut [u8], start: usize, views: &Views, elements: Range<usize>, memory: &Memory<'_>) -> usize {
    let count = elements.len();
    let words = start + WORD + null_bytes(count);
    put_word(bytes, start, count as i64);
    bytes[start + WORD..words].fill(0);
    let mut end = words + count * WORD;
    for (n, element) in elements.enumerate() {
        // the bits of an array are behind its count
        put_view(bytes, start, words + n * WORD, n + 64, &mut end, views.get(element, memory));
    }
    end
}

/// Writes a value at `end` and its place to `word`; offsets count from `start`. Of null, there is bit `null` from there.
#[inline]
fn put_view(bytes: &mut [u8], start: usize, word: usize, null: usize, end: &mut usize, value: Option<&[u8]>) {
    let Some(value) = value else {
        bytes[start + null / 8] |= 1 << (null % 8);
        return put_word(bytes, word, 0);
    };
    let size = in_words(value.len());
    let to = &mut bytes[*end..*end + size];
    to[..value.len()].copy_from_slice(value);
    to[value.len()..].fill(0);
    put_word(bytes, word, place(*end - start, value.len()));
    *end += size;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_rows_are_made_at_once_as_stay_in_a_cache() {
        let mut rows = UnsafeRows::default();
        assert_eq!(rows.begin(1, 0, |_| {}), 0);
        assert_eq!(rows.begin(1, 100_000, |_| {}), ROWS);
        assert_eq!(rows.begin(1, 100_000, |sizes| sizes.fill(BYTES / 4)), 4);
        assert_eq!(rows.begin(1, 100_000, |sizes| sizes.fill(BYTES + 8)), 1);
    }

    #[test]
    fn memory_of_a_huge_row_is_given_back() {
        let mut rows = UnsafeRows::default();
        assert_eq!(rows.begin(1, 1, |sizes| sizes[0] += KEPT), 1);
        assert!(rows.bytes.capacity() > KEPT);
        rows.begin(1, 1, |_| {});
        assert!(rows.bytes.capacity() < KEPT);
    }
}
