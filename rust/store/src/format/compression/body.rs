//! The buffer for a decompressed body. It grows with the bytes written and never exceeds its cap.
use crate::format::cursor::{Expected, Malformed};

/// Minimum length of the buffer that a decoder fills at a time.
pub(super) const MIN_STEP: usize = 4096;

/// The body, which is the part of `out` from `start` on.
pub(super) struct Body<'a> {
    pub(super) start: usize,
    pub(super) cap: usize,
    pub(super) out: &'a mut Vec<u8>,
}

impl<'a> Body<'a> {
    /// Begins an empty body at the end of `out`. The body may get at most `cap` bytes.
    pub(super) fn behind(out: &'a mut Vec<u8>, cap: usize) -> Self {
        Self { start: out.len(), cap, out }
    }

    pub(super) fn clear(&mut self) {
        self.out.truncate(self.start);
    }

    pub(super) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Appends `want` zero bytes and returns their position. Reserves memory by hand, because the doubling of a `Vec`
    /// could exceed the cap.
    pub(super) fn extend(&mut self, want: usize) -> usize {
        let at = self.out.len();
        // Double the capacity, but exceed the cap by at most the length of the bodies before.
        let limit = (2 * self.start).max(self.start.saturating_add(self.cap));
        let capacity = (2 * self.out.capacity()).min(limit).max(at + want);
        if at + want > self.out.capacity() {
            self.out.reserve_exact(capacity - at);
        }
        self.out.resize(at + want, 0);
        at
    }

    /// Calls `write` with a buffer that is as long as the body so far, and keeps as many bytes as `write` returns.
    /// Returns whether the buffer was filled. The buffer may be one byte longer than the cap allows, so that a body
    /// that is too long is detected.
    pub(super) fn fill(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Malformed>,
    ) -> Result<bool, Malformed> {
        // Doubles with the bytes written, since the size that a frame claims may be wrong.
        let want = self.len().max(MIN_STEP).min((self.cap - self.len()).saturating_add(1));
        let at = self.extend(want);
        let written = write(&mut self.out[at..])?;
        self.out.truncate(at + written);
        self.check(0)?;
        Ok(written == want)
    }

    pub(super) fn check(&self, more: usize) -> Result<(), Malformed> {
        let got = self.len().saturating_add(more);
        if got <= self.cap {
            return Ok(());
        }
        Err(Malformed { field: "body", at: 0, expected: Expected::AtMost(self.cap as i64), got: got as i64 })
    }
}

pub(super) fn broken(at: usize, expected: &'static str, got: i64) -> Malformed {
    Malformed { field: "body", at, expected: Expected::Words(expected), got }
}
