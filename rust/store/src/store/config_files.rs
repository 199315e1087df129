//! Reads the files in `config/`, or their `.bak` files. A damaged file never keeps a store from being opened.
//!
//! Source: `ConfigManager.load`, `TopicConfigManager`, `ConfigManager.persist`, `MixAll.string2File`.
use crate::file::disk::{create_directories, replace, sync_directory};
use crate::file::{Place, place};
use crate::format::config::{self, MAX_LEN};
use crate::{Error, Result};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub const TOPICS: &str = "topics.json";
/// Files that 5.x may replace by a RocksDB database (`storeType=defaultRocksDB`), with the directory of the database.
const DATABASES: [(&str, &str); 3] =
    [(TOPICS, "topics"), ("subscriptionGroup.json", "subscriptionGroups"), ("consumerOffset.json", "consumerOffsets")];
/// Directory of the single database that replaces all three files (`configManagerVersion=v2`).
const DATABASE_V2: &str = "rdb";

#[derive(Clone, Debug, Default)]
pub struct ConfigFile {
    /// The path of the file, which may not exist.
    pub path: PathBuf,
    /// The configuration; `None` if neither the file nor its backup can be read.
    pub value: Option<Value>,
    /// Describes the fault of the file; `None` if the file was read, or if neither the file nor its backup exists.
    pub fault: Option<String>,
    /// Describes the fault of the backup, if neither the file nor the backup can be read.
    pub backup_fault: Option<String>,
    /// A note for users. It says that the backup was read, or why nothing can be read.
    pub note: Option<String>,
    /// The RocksDB database that a 5.x broker uses in place of the file. The database is not read.
    pub database: Option<PathBuf>,
}

impl ConfigFile {
    /// Reads the file `name` in a store's `config/`. If the file is missing, empty or garbage, reads its `.bak` file.
    pub fn load(root: &Path, name: &str) -> Self {
        let file = Self::load_file(root, name);
        match database(root, name) {
            Ok(database) => Self { database, ..file },
            // There may be a database, so no file may be saved beside it.
            Err(error) if file.value.is_none() => {
                let fault = file.fault.clone().unwrap_or_else(|| MISSING.to_owned());
                let note = Some(format!("{}: {fault}; {error}", file.path.display()));
                Self { fault: Some(fault), backup_fault: Some(error.to_string()), note, ..file }
            }
            Err(_) => file,
        }
    }

    /// Tells whether the file or its backup exists. A path that cannot be examined counts as existing.
    pub fn exists(root: &Path, name: &str) -> bool {
        let path = root.join("config").join(name);
        [path.with_file_name(format!("{name}.bak")), path].iter().any(|path| path.try_exists().unwrap_or(true))
    }

    fn load_file(root: &Path, name: &str) -> Self {
        let path = root.join("config").join(name);
        let fault = match read(&path, name) {
            Ok((_, value)) => return Self { path, value: Some(value), ..Self::default() },
            Err(fault) => fault,
        };
        let backup = path.with_file_name(format!("{name}.bak"));
        let display = path.display();
        match (fault, read(&backup, name)) {
            (fault, Ok((_, value))) => {
                let note = Some(format!("{display}: {fault}; {name}.bak was read instead"));
                Self { path, value: Some(value), fault: Some(fault.to_string()), note, ..Self::default() }
            }
            // Neither file exists, so the store does not have this configuration.
            (Fault::Missing, Err(Fault::Missing)) => Self { path, ..Self::default() },
            (fault, Err(other)) => {
                let note = Some(format!("{display}: {fault}; {name}.bak: {other}"));
                let (fault, other) = (fault.to_string(), other.to_string());
                Self { path, value: None, fault: Some(fault), backup_fault: Some(other), note, database: None }
            }
        }
    }

    /// Returns the configuration, or `None` if neither the file nor its backup exists. Fails if a file exists but
    /// neither can be read, because saving a new configuration would destroy their content. Also fails if a database
    /// replaces the file.
    pub fn require_readable(&self) -> Result<Option<&Value>> {
        if let (None, Some(fault), Some(other)) = (&self.value, &self.fault, &self.backup_fault) {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let reason = format!("{fault}; {name}.bak: {other}; mend one of them, or remove both");
            return Err(Error::Corrupt { path: self.path.clone(), offset: 0, reason });
        }
        if let (None, Some(path)) = (&self.value, &self.database) {
            let reason = format!("{}; {}", self.explain_database(), suggest_source(path));
            return Err(Error::Unsupported { path: path.clone(), reason });
        }
        Ok(self.value.as_ref())
    }

    /// Parses the entries of the table `name`. Calls `entry` for each of them. Returns no entries if the file does
    /// not exist. Fails if the table is missing, or if `entry` refuses an entry, because a skipped entry would count
    /// as absent.
    pub fn parse_entries<T>(&self, name: &str, entry: impl Fn(&str, &Value) -> Option<T>) -> Result<Vec<T>> {
        let Some(value) = self.require_readable()? else { return Ok(Vec::new()) };
        let corrupt = |reason| Error::Corrupt { path: self.path.clone(), offset: 0, reason };
        let table = value.get(name).and_then(Value::as_object);
        let table = table.ok_or_else(|| corrupt(format!("expected an object {name}, got none")))?;
        let entries = table.iter().map(|(key, value)| {
            entry(key, value).ok_or_else(|| corrupt(format!("expected an entry of {name}, got {key}: {value}")))
        });
        entries.collect()
    }

    /// Returns notes for users about a backup that was read and a database that was not read.
    pub fn notes(&self) -> Vec<String> {
        self.note.clone().into_iter().chain(self.database_note()).collect()
    }

    /// Returns notes for users about databases that a 5.x broker uses in place of files.
    pub fn database_notes(root: &Path) -> impl Iterator<Item = String> {
        DATABASES.into_iter().filter_map(move |(name, _)| Self::load(root, name).database_note())
    }

    fn database_note(&self) -> Option<String> {
        let path = self.database.as_ref()?;
        let rest = match self.value {
            Some(_) => "the file, which may be older, is taken".to_owned(),
            None => suggest_source(path),
        };
        Some(format!("{}: {}; {rest}", path.display(), self.explain_database()))
    }

    fn explain_database(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("a broker of 5.x keeps in this RocksDB database what {name} says otherwise, and it is not read here")
    }

    /// Tells whether there is neither a readable file nor a database.
    pub fn is_missing(&self) -> bool {
        self.value.is_none() && self.database.is_none()
    }

    pub fn topics(&self) -> impl Iterator<Item = &str> {
        let table = self.value.as_ref().and_then(|value| value.get("topicConfigTable")).and_then(Value::as_object);
        table.into_iter().flat_map(|table| table.keys().map(String::as_str))
    }

    /// Returns the number of queues of a topic: read queues or write queues, whichever is greater. Returns `None` for a
    /// topic without configuration.
    pub fn queue_nums(&self, topic: &str) -> Option<u64> {
        let config = self.value.as_ref()?.get("topicConfigTable")?.get(topic)?;
        let nums = ["readQueueNums", "writeQueueNums"].map(|name| config.get(name).and_then(Value::as_u64));
        // While an operator shrinks a topic, some of its queues are still read but no longer written.
        nums.into_iter().flatten().max()
    }
}

/// Returns the path of the database that replaces the file `name`, if there is one. A directory with a file `CURRENT`
/// counts as a RocksDB database.
fn database(root: &Path, name: &str) -> Result<Option<PathBuf>> {
    let own = DATABASES.iter().filter(|(file, _)| *file == name).map(|(_, own)| *own);
    for directory in own.flat_map(|own| [DATABASE_V2, own]) {
        let path = root.join("config").join(directory);
        if place::is_file(&path.join("CURRENT"))? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Returns a hint for the user how to get the configuration out of a database. `mqadmin` cannot export the database of
/// `configManagerVersion=v2`.
fn suggest_source(database: &Path) -> String {
    if database.ends_with(DATABASE_V2) {
        return "ask the running broker for it (`rmqfast topic`, `rmqfast group`)".to_owned();
    }
    let kinds = DATABASES.map(|(_, directory)| directory).join(";");
    format!("`mqadmin rocksDBConfigToJson -b BROKER -t '{kinds}'` has the running broker write the files")
}

pub(super) const MISSING: &str = "missing";

/// The reason that a configuration file cannot be used.
#[derive(Debug)]
pub(super) enum Fault {
    Missing,
    Unreadable(String),
    Io(Error),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => MISSING,
            Self::Unreadable(reason) | Self::Io(Error::Corrupt { reason, .. }) => reason,
            Self::Io(Error::Io { source, .. }) => return source.fmt(f),
            Self::Io(error) => return error.fmt(f),
        })
    }
}

/// Reads the bytes at `path` and their JSON value. Fails if the value does not have the shape of the file `name`.
pub(super) fn read(path: &Path, name: &str) -> Result<(Vec<u8>, Value), Fault> {
    let len = Place::metadata(path).map_err(Fault::Io)?.map_or(0, |meta| meta.len());
    // Checked before the read, so that a huge file does not fill the memory.
    if len > config::MAX_LEN as u64 {
        return Err(Fault::Unreadable(config::ConfigError::TooLong(len as usize).to_string()));
    }
    let text = place::read(path, config::MAX_LEN as u64 + 1).map_err(Fault::Io)?.ok_or(Fault::Missing)?;
    // RocketMQ does not flush, so a power loss may leave an empty file.
    if text.trim_ascii().is_empty() {
        return Err(Fault::Unreadable("empty".to_owned()));
    }
    let value = config::parse(&text).map_err(|e| Fault::Unreadable(e.to_string()))?;
    config::check(name, &value).map_err(Fault::Unreadable)?;
    Ok((text, value))
}

// A configuration is saved atomically: after a crash or a power loss a reader finds the old file or the new file. The text is
// written to `NAME.tmp`, which no broker reads, then flushed and renamed. Before that, the previous file becomes `NAME.bak` in
// the same way. An unreadable file does not replace a good backup. RocketMQ does not flush, and for a moment has no file of
// that name.

static SAVING: Mutex<()> = Mutex::new(());

/// Writes the file `name` in `config/` of a store that the caller owns, byte for byte as RocketMQ 4.9.4 does.
pub fn save(root: &Path, name: &str, value: Value) -> Result<()> {
    save_text(root, name, text_of(name, value)?.as_bytes())
}

/// Writes a text from [`text_of`] into the file `name`. After an error the old file is still there, or the new file
/// if only the flush of the directory failed.
pub fn save_text(root: &Path, name: &str, text: &[u8]) -> Result<()> {
    check_name(name)?;
    let _alone = SAVING.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = root.join("config");
    if !place::is_directory(&directory)? {
        create_directories(&directory)?;
        // The name of the new directory must survive a power loss, too.
        sync_directory(root)?;
    }
    let path = directory.join(name);
    // Only a readable file becomes the backup.
    match read(&path, name) {
        Ok((current, _)) => replace(&directory.join(format!("{name}.bak")), &current)?,
        // A file that cannot be read for now may hold more than the file that would replace it.
        Err(Fault::Io(error)) => return Err(error),
        Err(Fault::Missing | Fault::Unreadable(_)) => {}
    }
    replace(&path, text)?;
    sync_directory(&directory)
}

/// Returns the text of the file `name`, byte for byte as RocketMQ 4.9.4 writes it. Fails with [`Error::Invalid`] for a value
/// that could not be read again.
pub fn text_of(name: &str, value: Value) -> Result<String> {
    check_name(name)?;
    config::check(name, &value).map_err(|reason| Error::invalid("value", format!("that of {name}"), reason))?;
    let text = config::to_fastjson(&config::in_broker_order(value));
    if text.len() > MAX_LEN {
        return Err(Error::invalid("value", format!("at most {MAX_LEN} bytes of {name}"), text.len()));
    }
    Ok(text)
}

fn check_name(name: &str) -> Result<()> {
    if config::NAMES.contains(&name) {
        return Ok(());
    }
    Err(Error::invalid("name", config::NAMES.join(", "), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    const NAME: &str = "topics.json";

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        let dir = tempfile::tempdir().expect("dir");
        for (name, value) in [(NAME, json!({})), ("../lock", json!({"topicConfigTable": {}}))] {
            assert!(matches!(text_of(name, value), Err(Error::Invalid { .. })));
        }
        assert!(matches!(save_text(dir.path(), "../lock", b"{}"), Err(Error::Invalid { .. })));
        assert!(!dir.path().join("config").exists());
    }

    #[test]
    fn what_a_killed_process_left_is_in_nobodys_way() {
        let dir = tempfile::tempdir().expect("dir");
        let saved = |n: i32| json!({"topicConfigTable": {"t": {"perm": n}}});
        save(dir.path(), NAME, saved(1)).expect("saved");
        let config = dir.path().join("config");
        for name in ["topics.json.tmp", "topics.json.bak.tmp"] {
            fs::write(config.join(name), vec![b'{'; 1000]).expect("written");
        }
        save(dir.path(), NAME, saved(2)).expect("saved");
        assert_eq!(ConfigFile::load(dir.path(), NAME).value, Some(saved(2)));
        let mut names: Vec<_> = fs::read_dir(&config).expect("read").flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        assert_eq!(names, [NAME, "topics.json.bak"]);
    }
}
