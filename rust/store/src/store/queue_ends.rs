//! The file `queue.ends` holds the ends of the queues at the last close or recovery. A queue that has lost its files since then
//! continues at its saved end, and not at 0.
//!
//! The first line is the CRC-32 of the second line, in hex. The second line is JSON:
//!
//! ```json
//! {"at": 1795000000000, "logEnd": 81920, "queues": {"orders": {"0": 119}}}
//! ```
//!
//! For messages appended later, the ends follow from the consume-queue entries of the log from `logEnd` on. RocketMQ
//! ignores the file.
use super::config_files::{self, ConfigFile};
use super::generation::RemovedTopics;
use super::message_store::MessageStore;
use crate::Result;
use crate::file::disk::{self, replace};
use crate::file::place;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

const FILE: &str = "queue.ends";
/// Maximum bytes of the file. No broker has enough queues to need more.
const MAX_LEN: u64 = 1 << 28;

/// The next offset of each queue, as saved at the last close or recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueEnds {
    pub log_end: u64,
    /// Time at which the ends were saved, in milliseconds since 1970.
    pub at_ms: i64,
    queues: BTreeMap<String, BTreeMap<i32, i64>>,
}

/// A queue that ends at `end`, although it had assigned all offsets before `next`. Its messages from `end` on have
/// lost their entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortQueue<'a> {
    pub topic: &'a str,
    pub queue_id: i32,
    end: i64,
    next: i64,
}

impl Display for ShortQueue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, queue_id, end, next } = self;
        write!(f, "queue {queue_id} of topic {topic} ends at {end}, but gave the offsets before {next}")
    }
}

impl QueueEnds {
    pub fn new(log_end: u64, at_ms: i64) -> Self {
        Self { log_end, at_ms, queues: BTreeMap::new() }
    }

    /// Reads the file of a store. The result is empty if the file is missing or damaged; [`fault`](Self::fault) tells
    /// whether it is damaged.
    pub fn load(root: &Path) -> Result<Self> {
        Ok(Self::read(root)?.and_then(|ends| ends.ok()).unwrap_or_default())
    }

    pub fn fault(root: &Path) -> Result<Option<String>> {
        Ok(Self::read(root)?.and_then(|ends| ends.err()))
    }

    fn read(root: &Path) -> Result<Option<std::result::Result<Self, String>>> {
        let path = root.join(FILE);
        let reason = match place::read(&path, MAX_LEN) {
            Ok(None) => return Ok(None),
            Ok(Some(text)) => match Self::decode(&text) {
                Some(ends) => return Ok(Some(Ok(ends))),
                None => format!("{}: its checksum does not fit", path.display()),
            },
            // A dead link or a directory.
            Err(error @ crate::Error::Corrupt { .. }) => error.to_string(),
            Err(error) => return Err(error),
        };
        Ok(Some(Err(format!("{reason}; where queues ended is told by units and the log alone"))))
    }

    pub fn add(&mut self, topic: &str, queue_id: i32, next: i64) {
        self.queues.entry(topic.to_owned()).or_default().insert(queue_id, next);
    }

    pub fn save(&self, root: &Path) -> Result<()> {
        replace(&root.join(FILE), &self.encode())?;
        disk::sync_directory(root)
    }

    /// Removes the file. Called before the log is cut, because the saved ends are wrong from then on.
    pub fn remove(root: &Path) -> Result<()> {
        if place::exists(&root.join(FILE))? {
            disk::remove_file(&root.join(FILE))?;
            disk::sync_directory(root)?;
        }
        Ok(())
    }

    /// Returns the queues and their next offsets. Leaves out topics that were removed since.
    pub fn iter<'a>(&'a self, removed: &'a RemovedTopics) -> impl Iterator<Item = (&'a str, i32, i64)> {
        let topics = self.queues.iter().filter(|(topic, _)| !removed.was_removed_after(topic, self.at_ms));
        topics.flat_map(|(topic, queues)| queues.iter().map(move |(queue_id, next)| (topic.as_str(), *queue_id, *next)))
    }

    /// Returns the queues of a topic and their next offsets; none if the topic was removed since.
    pub fn of_topic(&self, topic: &str, removed: &RemovedTopics) -> impl Iterator<Item = (i32, i64)> {
        let queues = self.queues.get(topic).filter(|_| !removed.was_removed_after(topic, self.at_ms));
        queues.into_iter().flatten().map(|(queue_id, next)| (*queue_id, *next))
    }

    /// Returns the queues that end before their saved end. `end_of` returns the present end of a queue.
    pub fn short<'a>(
        &'a self,
        removed: &'a RemovedTopics,
        end_of: impl Fn(&str, i32) -> i64 + 'a,
    ) -> impl Iterator<Item = ShortQueue<'a>> {
        self.iter(removed).filter_map(move |(topic, queue_id, next)| {
            let end = end_of(topic, queue_id);
            (end < next).then_some(ShortQueue { topic, queue_id, end, next })
        })
    }

    /// Returns whether a queue of the store is shorter than its saved end, or does not list a message that was appended
    /// after the ends were saved.
    pub fn find_shortage(store: &MessageStore) -> Result<bool> {
        let ends = Self::load(store.root())?;
        let removed = RemovedTopics::load(store.root())?;
        let mut ends_now: BTreeMap<(String, i32), i64> = BTreeMap::new();
        for queue in store.all_queues()? {
            ends_now.insert((queue.topic().to_owned(), queue.queue_id()), queue.max_offset()?);
        }
        // A queue without a directory counts as empty.
        let end_of = |topic: &str, queue_id| ends_now.get(&(topic.to_owned(), queue_id)).copied().unwrap_or(0);
        let is_short = ends.short(&removed, end_of).next().is_some();
        // Messages appended after the last save are not in the file, so the log is checked for them.
        Ok(is_short || store.misses_behind(ends.log_end)?)
    }

    fn encode(&self) -> Vec<u8> {
        let queues = self.queues.iter().map(|(topic, queues)| {
            let ends = queues.iter().map(|(queue_id, next)| (queue_id.to_string(), json!(next)));
            (topic.clone(), Value::Object(ends.collect()))
        });
        let value = json!({"at": self.at_ms, "logEnd": self.log_end, "queues": queues.collect::<Map<_, _>>()});
        let text = value.to_string();
        format!("{:08x}\n{text}\n", crc32fast::hash(text.as_bytes())).into_bytes()
    }

    /// Decodes the content of the file. Returns `None` unless [`encode`](Self::encode) has written `bytes`.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (crc, text) = text.strip_suffix('\n')?.split_once('\n')?;
        // The checksum detects a file that was not written completely.
        if u32::from_str_radix(crc, 16).ok()? != crc32fast::hash(text.as_bytes()) {
            return None;
        }
        let value: Value = serde_json::from_str(text).ok()?;
        let mut ends = Self::new(value.get("logEnd")?.as_u64()?, value.get("at")?.as_i64()?);
        for (topic, queues) in value.get("queues")?.as_object()? {
            for (queue_id, next) in queues.as_object()? {
                ends.add(topic, queue_id.parse().ok()?, next.as_i64()?);
            }
        }
        Some(ends)
    }
}

const LOST_FILE: &str = "lostMessages.json";
const LOST_TABLE: &str = "lostMessages";

/// Messages lost with the end of the log, in `config/lostMessages.json`. No queue assigns their offsets again.
///
/// ```json
/// {"lostMessages": {"orders": {"0": [{"at": 1795000000000, "begin": 414, "end": 450}]}}}
/// ```
///
/// The queue skips the offsets from `begin` to `end`, and its next message follows behind them. If the topic is removed later,
/// its queues begin at 0. RocketMQ ignores the file. It skips the offsets because the queue has units without a message there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostMessages {
    queues: BTreeMap<String, BTreeMap<i32, Vec<Loss>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    pub begin: i64,
    /// Offset behind the last lost message (exclusive).
    pub end: i64,
    /// Time of the repair, in milliseconds since 1970.
    pub at_ms: i64,
}

impl LostMessages {
    pub fn load(root: &Path) -> Result<Self> {
        let mut all = Self::default();
        for (topic, losses) in ConfigFile::load(root, LOST_FILE).parse_entries(LOST_TABLE, losses_of)? {
            losses.into_iter().for_each(|(queue_id, loss)| all.add(&topic, queue_id, loss));
        }
        Ok(all)
    }

    pub fn path(root: &Path) -> PathBuf {
        root.join("config").join(LOST_FILE)
    }

    pub fn exist(root: &Path) -> bool {
        ConfigFile::exists(root, LOST_FILE)
    }

    pub fn add(&mut self, topic: &str, queue_id: i32, loss: Loss) {
        if loss.begin >= loss.end {
            return;
        }
        let losses = self.queues.entry(topic.to_owned()).or_default().entry(queue_id).or_default();
        // A known loss that ends there or later already covers the end of this loss.
        if losses.iter().all(|known| known.end < loss.end) {
            losses.push(loss);
        }
    }

    pub fn save(&self, root: &Path) -> Result<()> {
        let mut table = Map::new();
        for (topic, queues) in &self.queues {
            let queues = queues.iter().map(|(queue_id, losses)| {
                (queue_id.to_string(), losses.iter().map(|loss| loss.to_json()).collect::<Value>())
            });
            table.insert(topic.clone(), Value::Object(queues.collect()));
        }
        config_files::save(root, LOST_FILE, json!({ LOST_TABLE: table }))
    }

    /// Returns, for each queue with losses, the end of its last loss. Topics that were removed after the loss are
    /// left out.
    pub fn ends<'a>(&'a self, removed: &'a RemovedTopics) -> impl Iterator<Item = (&'a str, i32, i64)> {
        self.queues.iter().flat_map(move |(topic, queues)| {
            queues.iter().filter_map(move |(queue_id, losses)| {
                // A topic that was created again begins at offset 0, whatever was lost before.
                let losses = losses.iter().filter(|loss| !removed.was_removed_after(topic, loss.at_ms));
                Some((topic.as_str(), *queue_id, losses.map(|loss| loss.end).max()?))
            })
        })
    }
}

fn losses_of(topic: &str, queues: &Value) -> Option<(String, Vec<(i32, Loss)>)> {
    let mut losses = Vec::new();
    for (queue_id, of_queue) in queues.as_object()? {
        let queue_id = queue_id.parse().ok()?;
        for loss in of_queue.as_array()? {
            losses.push((queue_id, Loss::from_json(loss)?));
        }
    }
    Some((topic.to_owned(), losses))
}

impl Loss {
    fn from_json(value: &Value) -> Option<Self> {
        let number = |name| value.get(name)?.as_i64();
        // Somebody may have edited the file, so a negative offset is possible.
        Some(Self { begin: number("begin")?.max(0), end: number("end")?, at_ms: number("at")? })
    }

    fn to_json(self) -> Value {
        json!({"at": self.at_ms, "begin": self.begin, "end": self.end})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> QueueEnds {
        let mut ends = QueueEnds::new(81_920, 5);
        for (topic, queue_id, next) in [("orders", 0, 119), ("orders", 3, 0), ("idle", 0, 1)] {
            ends.add(topic, queue_id, next);
        }
        ends
    }

    #[test]
    fn ends_are_there_again_after_a_save() {
        let dir = tempfile::tempdir().expect("dir");
        assert_eq!(QueueEnds::load(dir.path()).expect("none"), QueueEnds::default());
        ends().save(dir.path()).expect("saved");
        assert_eq!(QueueEnds::load(dir.path()).expect("read"), ends());
        let removed = RemovedTopics::default();
        assert_eq!(ends().iter(&removed).collect::<Vec<_>>(), [("idle", 0, 1), ("orders", 0, 119), ("orders", 3, 0)]);
        QueueEnds::remove(dir.path()).expect("removed");
        assert_eq!(QueueEnds::load(dir.path()).expect("none"), QueueEnds::default());
    }

    #[test]
    fn a_flipped_bit_and_a_cut_make_a_file_that_says_nothing() {
        let whole = ends().encode();
        for at in 0..whole.len() {
            assert_eq!(QueueEnds::decode(&whole[..at]), None, "cut at {at}");
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                // A flipped bit may turn a hex digit into a capital letter, which is still valid.
                assert!(QueueEnds::decode(&flipped).is_none_or(|decoded| decoded == ends()), "bit {bit} of {at}");
            }
        }
        let dir = tempfile::tempdir().expect("dir");
        assert_eq!(QueueEnds::fault(dir.path()).expect("none"), None);
        ends().save(dir.path()).expect("saved");
        assert_eq!(QueueEnds::fault(dir.path()).expect("sound"), None);
        std::fs::write(dir.path().join(FILE), &whole[1..]).expect("written");
        let fault = QueueEnds::fault(dir.path()).expect("read").expect("a fault");
        assert!(fault.contains("queue.ends: its checksum does not fit"), "{fault}");
    }

    #[test]
    fn an_entry_that_is_none_is_an_error() {
        let dir = tempfile::tempdir().expect("dir");
        std::fs::create_dir(dir.path().join("config")).expect("made");
        for table in
            [r#""x""#, r#"{"orders": 5}"#, r#"{"orders": {"q": []}}"#, r#"{"orders": {"0": [{"at": 1, "begin": 4}]}}"#]
        {
            let text = format!(r#"{{"lostMessages": {table}}}"#);
            std::fs::write(dir.path().join("config").join(LOST_FILE), text).expect("written");
            assert!(LostMessages::load(dir.path()).is_err(), "{table}");
        }
    }

    #[test]
    fn losses_are_there_again_after_a_save_and_count_once() {
        let dir = tempfile::tempdir().expect("dir");
        assert!(!LostMessages::exist(dir.path()));
        assert_eq!(LostMessages::load(dir.path()).expect("none"), LostMessages::default());
        let mut lost = LostMessages::default();
        for (queue_id, begin, end) in [(0, 4, 9), (0, 4, 9), (0, 20, 22), (3, 0, 1), (4, 7, 7)] {
            lost.add("orders", queue_id, Loss { begin, end, at_ms: 5 });
        }
        lost.save(dir.path()).expect("saved");
        assert!(LostMessages::exist(dir.path()));
        let read = LostMessages::load(dir.path()).expect("read");
        assert_eq!(read, lost);
        let removed = RemovedTopics::default();
        assert_eq!(read.ends(&removed).collect::<Vec<_>>(), [("orders", 0, 22), ("orders", 3, 1)]);
    }
}
