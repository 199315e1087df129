//! Bytes of a store that a reader could not use: reported, never skipped in silence.
use crate::Error;
use std::fmt;
use std::path::PathBuf;

/// A gap in what was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Commit-log offset, or the byte offset in a consume queue or index where `file` is one.
    pub offset: u64,
    /// Bytes passed over; 0 where the row is there but a part of it is not.
    pub length: u64,
    /// What was expected and what was found.
    pub reason: String,
    pub file: PathBuf,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}, {} bytes: {}", self.file.display(), self.offset, self.length, self.reason)
    }
}

/// The reason of a damage, with the message that a queue lists there: its unit may be what is wrong.
pub fn listed_there(reason: &str, topic: &str, queue_id: i32, queue_offset: i64) -> String {
    format!("{reason}; message {queue_offset} of queue {queue_id} of topic {topic} is listed there")
}

/// Damages met so far; past [`DamageLog::LIMIT`] they are only counted, as a ruined store must not fill the memory.
#[derive(Clone, Debug, Default)]
pub struct DamageLog {
    entries: Vec<Damage>,
    more: u64,
}

impl DamageLog {
    /// Damages kept in full.
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

    /// Notes all of another log.
    pub fn append(&mut self, other: Self) {
        other.entries.into_iter().for_each(|damage| self.push(damage));
        self.more += other.more;
    }

    pub fn entries(&self) -> &[Damage] {
        &self.entries
    }

    /// How many came after those.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// The error for who wants none of it; `None` where nothing was damaged.
    pub fn error(&self) -> Option<Error> {
        let first = self.entries.first()?;
        let more = match self.entries.len() as u64 - 1 + self.more {
            0 => String::new(),
            more => format!(", and {more} more places"),
        };
        let reason = format!("{}{more}; on_damage=\"warn\" reads what is left", first.reason);
        Some(Error::Corrupt { path: first.file.clone(), offset: first.offset, reason })
    }

    /// Whether nothing was damaged.
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
