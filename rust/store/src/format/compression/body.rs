//! The output of decompression: a body that grows with its bytes, never past its cap.
use crate::format::malformed::{Expected, Malformed};

/// Minimum room for a decoder's step, in bytes.
pub(super) const MIN_STEP: usize = 4096;

/// The part of `out` from `start` on.
pub(super) struct Body<'a> {
    pub(super) start: usize,
    pub(super) cap: usize,
    pub(super) out: &'a mut Vec<u8>,
}

impl<'a> Body<'a> {
    /// An empty body at the end of `out`, for at most `cap` bytes.
    pub(super) fn behind(out: &'a mut Vec<u8>, cap: usize) -> Self {
        Self { start: out.len(), cap, out }
    }

    pub(super) fn clear(&mut self) {
        self.out.truncate(self.start);
    }

    pub(super) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Appends `want` zero bytes and returns their position. A vector's own doubling would pass the cap.
    pub(super) fn extend(&mut self, want: usize) -> usize {
        let at = self.out.len();
        let limit = (2 * self.start).max(self.start.saturating_add(self.cap));
        let capacity = (2 * self.out.capacity()).min(limit).max(at + want);
        if at + want > self.out.capacity() {
            self.out.reserve_exact(capacity - at);
        }
        self.out.resize(at + want, 0);
        at
    }

    /// Lets `write` fill as many bytes again, up to one past the cap so that an overflow shows, and return its count. Returns whether
    /// all were filled.
    pub(super) fn fill(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Malformed>,
    ) -> Result<bool, Malformed> {
        // The body doubles as its bytes come, since its claimed size may be a lie.
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
