//! Records that no queue vouches for: taken once their bytes stay as they are.
use crate::format::message::Message;
use std::time::{Duration, Instant};

/// Bytes as an earlier look found them.
#[derive(Debug, Default)]
pub struct Settled {
    from: u64,
    bytes: Vec<u8>,
    since: Option<Instant>,
}

impl Settled {
    /// How long `record` has stood at `offset` as it is; `None` where it was not there, or was another.
    pub fn age(&self, offset: u64, record: &[u8]) -> Option<Duration> {
        let at = usize::try_from(offset.checked_sub(self.from)?).ok()?;
        let seen = self.bytes.get(at..at.checked_add(record.len())?)?;
        (seen == record).then(|| self.since.map(|since| since.elapsed())).flatten()
    }

    /// Remembers what stands at `from`.
    pub fn note(&mut self, from: u64, bytes: &[u8]) {
        self.from = from;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.since = Some(Instant::now());
    }
}

/// Whether topic or properties, which no checksum covers, may not be all there yet: unwritten bytes are zeroes.
pub fn may_be_unwritten(message: &Message<'_>) -> bool {
    message.topic().contains(&0) || message.properties().contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_an_age_only_as_long_as_they_are_the_same() {
        let mut settled = Settled::default();
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
