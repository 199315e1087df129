//! Reports damage. Damage is a range of bytes of a store that a reader could not use. It is never skipped silently.
use crate::Error;
use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the commit log. If `file` is a consume queue or an index file, offset in that queue or file.
    pub offset: u64,
    /// Number of bytes that were skipped; 0 if only a part of a row is missing.
    pub length: u64,
    pub reason: String,
    pub file: PathBuf,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}, {} bytes: {}", self.file.display(), self.offset, self.length, self.reason)
    }
}

/// Completes the reason of a damaged record with the message that a queue lists there. The queue's entry may be wrong
/// instead of the record.
pub fn listed_there(reason: &str, topic: &str, queue_id: i32, queue_offset: i64) -> String {
    format!("{reason}; message {queue_offset} of queue {queue_id} of topic {topic} is listed there")
}

/// The damage found so far. Entries beyond [`DamageLog::LIMIT`] are only counted, so that a ruined store does not fill the
/// memory.
#[derive(Clone, Debug, Default)]
pub struct DamageLog {
    entries: Vec<Damage>,
    more: u64,
}

impl DamageLog {
    pub const LIMIT: usize = 10_000;

    pub fn push(&mut self, damage: Damage) {
        if self.entries.len() < Self::LIMIT {
            self.entries.push(damage);
        } else {
            self.more += 1;
        }
    }

    pub fn extend(&mut self, damage: impl IntoIterator<Item = Damage>) {
        damage.into_iter().for_each(|damage| self.push(damage));
    }

    pub fn append(&mut self, other: Self) {
        other.entries.into_iter().for_each(|damage| self.push(damage));
        self.more += other.more;
    }

    pub fn entries(&self) -> &[Damage] {
        &self.entries
    }

    /// Returns the number of entries that were only counted.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Returns the first damage as an error that also has the number of further damages; `None` without damage.
    pub fn error(&self) -> Option<Error> {
        let first = self.entries.first()?;
        let more = match self.entries.len() as u64 - 1 + self.more {
            0 => String::new(),
            more => format!(", and {more} more places"),
        };
        let reason = format!("{}{more}; on_damage=\"warn\" reads what is left", first.reason);
        Some(Error::Corrupt { path: first.file.clone(), offset: first.offset, reason })
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_the_limit_damages_are_counted() {
        let damage = Damage { offset: 1, length: 2, reason: "r".into(), file: "f".into() };
        let mut log = DamageLog::default();
        (0..DamageLog::LIMIT + 3).for_each(|_| log.push(damage.clone()));
        assert_eq!((log.entries().len(), log.more()), (DamageLog::LIMIT, 3));
        assert_eq!(damage.to_string(), "f at offset 1, 2 bytes: r");
    }
}
