//! The bodies that could not be decoded: a sample of them, and their number.
use crate::Error;

/// Maximum length of a reason in bytes. A reason may quote a body, which may be long.
const MAX_REASON: usize = 300;

/// A message whose body could not be decoded. Its column `value` is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBody {
    pub topic: String,
    pub queue_id: i32,
    pub queue_offset: i64,
    pub physical_offset: i64,
    pub reason: String,
}

impl BadBody {
    /// Returns the error of a scan that stops at bad bodies.
    pub fn error(&self) -> Error {
        Error::Body {
            topic: self.topic.clone(),
            queue_id: self.queue_id,
            queue_offset: self.queue_offset,
            reason: self.reason.clone(),
        }
    }
}

/// The bad bodies found so far. Entries beyond [`BadBodies::LIMIT`] are only counted, since each row may be bad.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadBodies {
    entries: Vec<BadBody>,
    more: u64,
}

impl BadBodies {
    pub const LIMIT: usize = 100;

    /// Counts a body. `describe` is called only if the sample has room.
    pub fn push(&mut self, describe: impl FnOnce() -> BadBody) {
        if self.entries.len() < Self::LIMIT {
            let mut entry = describe();
            shorten(&mut entry.reason);
            self.entries.push(entry);
        } else {
            self.more += 1;
        }
    }

    pub fn append(&mut self, other: Self) {
        other.entries.into_iter().for_each(|entry| self.push(|| entry));
        self.more += other.more;
    }

    pub fn entries(&self) -> &[BadBody] {
        &self.entries
    }

    /// Returns the number of bodies that were only counted.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Returns the number of all bad bodies.
    pub fn count(&self) -> u64 {
        self.entries.len() as u64 + self.more
    }

    pub fn error(&self) -> Option<Error> {
        self.entries.first().map(BadBody::error)
    }
}

fn shorten(reason: &mut String) {
    if reason.len() > MAX_REASON {
        let end = (0..=MAX_REASON).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or(0);
        reason.truncate(end);
        reason.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_the_limit_bodies_are_counted_and_long_reasons_are_cut() {
        let body = BadBody {
            topic: "T".into(),
            queue_id: 1,
            queue_offset: 2,
            physical_offset: 3,
            reason: "é".repeat(MAX_REASON),
        };
        let mut bodies = BadBodies::default();
        (0..BadBodies::LIMIT + 3).for_each(|_| bodies.push(|| body.clone()));
        assert_eq!((bodies.entries().len(), bodies.more()), (BadBodies::LIMIT, 3));
        assert_eq!(bodies.entries()[0].reason.len(), MAX_REASON + '…'.len_utf8());
    }
}
