//! Builds the Arrow arrays of strings and bytes, for all columns.
use super::row::Span;
use super::unchecked;
use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::{BinaryArray, StringArray};
use arrow_buffer::NullBuffer;
use std::borrow::Cow;

/// An array under construction: the bytes of all values, the end of each value, and a null bitmap if there are nulls.
#[derive(Debug, Default)]
pub struct Text {
    pub bytes: Vec<u8>,
    ends: Vec<i32>,
    valid: Option<BooleanBufferBuilder>,
}

impl Text {
    #[inline]
    pub fn end(&mut self, valid: bool) {
        match &mut self.valid {
            Some(bits) => bits.append(valid),
            None if !valid => self.first_null(),
            None => {}
        }
        // Fits into 32 bits, since the size of a batch is limited.
        self.ends.push(self.bytes.len() as i32);
    }

    #[cold]
    fn first_null(&mut self) {
        // Most columns have no nulls, so the first null creates the bitmap.
        let mut bits = BooleanBufferBuilder::new(self.ends.len() + 1024);
        bits.append_n(self.ends.len(), true);
        bits.append(false);
        self.valid = Some(bits);
    }

    /// Reserves memory for all rows, since a vector that grows step by step is copied each time.
    pub fn reserve(&mut self, bytes: usize, values: usize) {
        self.bytes.reserve(bytes);
        self.ends.reserve(values);
    }

    /// Appends a value, or null. Invalid UTF-8 becomes U+FFFD.
    #[inline]
    pub fn push(&mut self, value: Option<&[u8]>) {
        match value {
            Some(bytes) if bytes.is_ascii() => self.bytes.extend_from_slice(bytes),
            Some(bytes) => self.bytes.extend_from_slice(&lossy(bytes)),
            None => {}
        }
        self.end(value.is_some());
    }

    /// Appends a part of the block that is known to be ASCII. For short values always copies 32 bytes and truncates, since a copy of fixed
    /// length needs no call of `memcpy`.
    #[inline]
    pub fn push_ascii(&mut self, block: &[u8], span: Span) {
        const SHORT: usize = 32;
        let (start, len) = (span.at as usize, span.len as usize);
        let at = self.bytes.len();
        match block.get(start..).and_then(|b| b.first_chunk::<SHORT>()) {
            Some(chunk) if len <= SHORT => {
                self.bytes.extend_from_slice(chunk);
                self.bytes.truncate(at + len);
            }
            _ => self.bytes.extend_from_slice(&block[start..start + len]),
        }
        self.end(len > 0);
    }

    /// Appends a part of the block, or null if the part is absent. `ascii` says that the part is known to be ASCII.
    #[inline]
    pub fn push_span(&mut self, block: &[u8], span: Span, ascii: bool) {
        if ascii { self.push_ascii(block, span) } else { self.push(span.of(block)) }
    }

    /// Appends `value` as many times as `times` says, by copying the copies.
    pub fn repeat(&mut self, value: &[u8], times: usize) {
        let (start, len) = (self.bytes.len(), value.len());
        let end = start + len * times;
        self.bytes.reserve(len * times);
        if times > 0 {
            self.bytes.extend_from_slice(value);
        }
        while self.bytes.len() < end {
            // Copies all that was written so far, so the number of copies is logarithmic.
            let more = (self.bytes.len() - start).min(end - self.bytes.len());
            self.bytes.extend_from_within(start..start + more);
        }
        self.ends.extend((1..=times).map(|n| (start + n * len) as i32));
    }

    pub fn len_bytes(&self) -> usize {
        self.bytes.len() + 4 * self.ends.len()
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the values as strings and empties the builder. All bytes that were appended directly to
    /// [`bytes`](Self::bytes) must be ASCII.
    pub fn finish(&mut self) -> StringArray {
        let (ends, bytes, nulls) = self.take();
        unchecked::strings(ends, bytes, nulls)
    }

    /// Returns the values as binaries and empties the builder.
    pub fn finish_binary(&mut self) -> BinaryArray {
        let (ends, bytes, nulls) = self.take();
        unchecked::binaries(ends, bytes, nulls)
    }

    fn take(&mut self) -> (Vec<i32>, Vec<u8>, Option<NullBuffer>) {
        let (bytes, ends) = (self.bytes.len(), self.ends.len());
        // Reserve for the next batch, which is probably about as large.
        let values = std::mem::replace(&mut self.bytes, Vec::with_capacity(bytes + bytes / 8));
        let ends = std::mem::replace(&mut self.ends, Vec::with_capacity(ends + 1));
        let nulls = self.valid.take().map(|mut bits| NullBuffer::new(bits.finish()));
        (ends, values, nulls)
    }
}

/// Replaces invalid UTF-8 with U+FFFD, like Java's decoder.
pub fn lossy(bytes: &[u8]) -> Cow<'_, [u8]> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}
