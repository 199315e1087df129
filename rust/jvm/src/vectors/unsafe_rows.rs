//! Rows in the format of Spark's `UnsafeRow`.
//!
//! ```text
//! row:   a bit for each null field, in words │ a word a field: the number, or offset << 32 | length │ values, each in words
//! array: number of elements                  │ bits and words of its elements, as in a row          │ values
//! map:   bytes of the array of names         │ array of names                                       │ array of values
//! ```
//!
//! A word has 8 bytes. A value is padded with zeros to whole words, since Spark compares and hashes rows as bytes.
use super::views::{Memory, Views};
use std::ops::Range;

/// Maximum number of rows to convert at once, so that the rows and their data fit into a core's cache.
const ROWS: usize = 128;
const BYTES: usize = 256 << 10;
/// Maximum bytes of memory to keep for the next rows. A larger memory is freed.
const KEPT: usize = 8 << 20;
const WORD: usize = 8;

/// Successive rows of a batch. Their memory is reused for the next rows.
#[derive(Debug, Default)]
pub(super) struct UnsafeRows {
    fields: usize,
    bytes: Vec<u8>,
    /// Length of each row in bytes. Java reads this array.
    lengths: Vec<i32>,
    starts: Vec<usize>,
    /// For each row, the position at which its next value is written.
    ends: Vec<usize>,
}

impl UnsafeRows {
    /// Begins up to `most` rows of `fields` fields. Returns the number of rows, which is at least 1 unless `most` is 0.
    /// `measure` adds to the size of each row the bytes of its values, without the one word that each field has in
    /// every row.
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
            // the first row is always taken, however large it is
            if end > 0 && end + size > BYTES {
                break;
            }
            // Spark stores a row's length as an int
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
            // only the null bits need zeros, since all other words are written
            self.bytes[start..start + null_bytes(fields)].fill(0);
        }
        self.starts.len()
    }

    /// Returns the address of the rows and the address of their lengths.
    pub(super) fn addresses(&self) -> [i64; 2] {
        [self.bytes.as_ptr() as i64, self.lengths.as_ptr() as i64]
    }

    pub(super) fn put_numbers(&mut self, field: usize, numbers: impl Iterator<Item = i64>) {
        let at = self.word(field);
        for (start, number) in self.starts.iter().zip(numbers) {
            put_word(&mut self.bytes, start + at, number);
        }
    }

    /// Writes a value into each row. The first row gets the value at index `from`.
    pub(super) fn put_views(&mut self, field: usize, views: &Views, from: usize, memory: &Memory<'_>) {
        let at = self.word(field);
        for (row, (&start, end)) in self.starts.iter().zip(&mut self.ends).enumerate() {
            put_view(&mut self.bytes, start, start + at, field, end, views.get(from + row, memory));
        }
    }

    /// Writes a map into each row. The pairs of a row are the names and values in its range.
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
            // a map begins with the length of its array of names
            put_word(&mut self.bytes, map, (between - map - WORD) as i64);
            *end = put_array(&mut self.bytes, between, values, pairs, memory);
            put_word(&mut self.bytes, row + at, place(map - row, *end - map));
        }
    }

    #[inline]
    fn word(&self, field: usize) -> usize {
        null_bytes(self.fields) + field * WORD
    }
}

/// Adds the bytes of a value to each row's size in `sizes`, in whole words. The first row has the value at index
/// `from`. The word that each field has in every row is not counted.
pub(super) fn measure(views: &Views, from: usize, sizes: &mut [usize]) {
    for (row, size) in (from..).zip(sizes) {
        *size += in_words(views.size(row));
    }
}

/// Returns the bytes of a map that consists of these pairs.
pub(super) fn map_size(pairs: Range<usize>, names: &Views, values: &Views) -> usize {
    let fixed = WORD + null_bytes(pairs.len()) + pairs.len() * WORD;
    let values: usize = pairs.map(|pair| in_words(names.size(pair)) + in_words(values.size(pair))).sum();
    WORD + 2 * fixed + values
}

fn in_words(length: usize) -> usize {
    length.next_multiple_of(WORD)
}

/// Returns the number of bytes for the null bits of `fields` fields.
fn null_bytes(fields: usize) -> usize {
    fields.div_ceil(64) * WORD
}

fn place(offset: usize, length: usize) -> i64 {
    (offset as i64) << 32 | length as i64
}

fn put_word(bytes: &mut [u8], at: usize, word: i64) {
    // in the byte order of the machine, as Spark reads rows with `Unsafe`
    bytes[at..at + WORD].copy_from_slice(&word.to_ne_bytes());
}

/// Writes an array at `start` and returns the position of its end.
fn put_array(bytes: &mut [u8], start: usize, views: &Views, elements: Range<usize>, memory: &Memory<'_>) -> usize {
    let count = elements.len();
    let words = start + WORD + null_bytes(count);
    put_word(bytes, start, count as i64);
    bytes[start + WORD..words].fill(0);
    let mut end = words + count * WORD;
    for (n, element) in elements.enumerate() {
        // `+ 64` because an array's null bits follow its count, which is one word
        put_view(bytes, start, words + n * WORD, n + 64, &mut end, views.get(element, memory));
    }
    end
}

/// Writes a value at `end`. Writes to the word at `word` the length of the value, and its position counted from
/// `start`. For a null value writes 0 to this word, and sets the null bit with number `null`.
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
