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

/// The bad bodies found so far. Entries beyond a limit are only counted, since each row may be bad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBodies {
    entries: Vec<BadBody>,
    more: u64,
    limit: usize,
}

impl Default for BadBodies {
    fn default() -> Self {
        Self::with_limit(Self::LIMIT)
    }
}

impl BadBodies {
    pub const LIMIT: usize = 100;
    /// The limit of a scan that lists all bad bodies.
    pub const LARGEST_LIMIT: usize = 1 << 20;

    pub fn with_limit(limit: usize) -> Self {
        Self { entries: Vec::new(), more: 0, limit }
    }

    /// Counts a body. `describe` is called only if there is room for another entry.
    pub fn push(&mut self, describe: impl FnOnce() -> BadBody) {
        if self.entries.len() < self.limit {
            let mut entry = describe();
            shorten(&mut entry.reason);
            self.entries.push(entry);
        } else {
            self.more += 1;
        }
    }

    /// Returns the bad bodies, and begins anew.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::with_limit(self.limit))
    }

    /// Adds the bad bodies of another part of the same scan.
    pub fn append(&mut self, other: Self) {
        self.limit = self.limit.max(other.limit);
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
        // a scan that lists all of them
        let mut all = BadBodies::with_limit(BadBodies::LARGEST_LIMIT);
        (0..BadBodies::LIMIT + 3).for_each(|_| all.push(|| body.clone()));
        let mut whole = BadBodies::default();
        whole.append(all.take());
        assert_eq!((whole.entries().len(), whole.more(), all.count()), (BadBodies::LIMIT + 3, 0, 0));
    }
}
