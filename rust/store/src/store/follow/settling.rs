//! Keeps the bytes at the end of the log, to detect whether they still change.
use crate::format::message::Message;
use std::time::{Duration, Instant};

/// The bytes of an earlier read, and the time of that read.
#[derive(Debug, Default)]
pub struct SettlingBytes {
    from: u64,
    bytes: Vec<u8>,
    since: Option<Instant>,
}

impl SettlingBytes {
    /// Returns how long the bytes at `offset` have been `record`; `None` if they were other bytes,
    /// or not read, last time.
    pub fn age(&self, offset: u64, record: &[u8]) -> Option<Duration> {
        let at = usize::try_from(offset.checked_sub(self.from)?).ok()?;
        let seen = self.bytes.get(at..at.checked_add(record.len())?)?;
        (seen == record).then(|| self.since.map(|since| since.elapsed())).flatten()
    }

    pub fn note(&mut self, from: u64, bytes: &[u8]) {
        self.from = from;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.since = Some(Instant::now());
    }
}

/// Tells whether topic or properties may be incomplete. Unwritten bytes are zero, and no checksum covers these fields.
pub fn may_be_unwritten(message: &Message<'_>) -> bool {
    message.topic().contains(&0) || message.properties().contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_an_age_only_as_long_as_they_are_the_same() {
        let mut settled = SettlingBytes::default();
        assert_eq!(settled.age(0, b""), None);
        settled.note(100, b"0123456789");
        assert!(settled.age(100, b"0123456789").is_some() && settled.age(103, b"34").is_some());
        for (offset, bytes) in [(99, &b"0"[..]), (100, b"1"), (109, b"9x"), (200, b"")] {
            assert_eq!(settled.age(offset, bytes), None, "{offset}");
        }
        settled.note(105, b"5");
        assert_eq!(settled.age(103, b"34"), None);
    }
}
