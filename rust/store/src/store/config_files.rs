//! The files below `config/`: read with their `.bak`, and never a reason not to read the store.
//!
//! Source: `ConfigManager.load`, `TopicConfigManager`.
use crate::format::config;
use crate::{Error, Result};
use serde_json::Value;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// Where topics are configured.
pub const TOPICS: &str = "topics.json";
/// Files in whose place 5.x may have a RocksDB database (`storeType=defaultRocksDB`), and its directory.
const DATABASES: [(&str, &str); 3] =
    [(TOPICS, "topics"), ("subscriptionGroup.json", "subscriptionGroups"), ("consumerOffset.json", "consumerOffsets")];
/// The database in place of all three (`configManagerVersion=v2`).
const DATABASE_V2: &str = "rdb";

/// What a file, or its backup, says.
#[derive(Clone, Debug, Default)]
pub struct ConfigFile {
    /// The file, whether it is there or not.
    pub path: PathBuf,
    /// What is configured; `None` where there is nothing that can be read.
    pub value: Option<Value>,
    /// What is wrong with the file itself.
    pub fault: Option<String>,
    /// What is wrong with the backup where neither can be read.
    pub backup_fault: Option<String>,
    /// What a person should know of where the value is from.
    pub note: Option<String>,
    /// The RocksDB database in which a broker of 5.x keeps what the file says otherwise; it is not read.
    pub database: Option<PathBuf>,
}

impl ConfigFile {
    /// Reads the file `name` below the `config/` of a store, or its `.bak` where that is missing, empty or garbage.
    pub fn load(root: &Path, name: &str) -> Self {
        Self { database: database(root, name), ..Self::load_file(root, name) }
    }

    /// Whether the file or its backup is there, whatever it says; so it is where nobody can tell.
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
        let shown = path.display();
        match (fault, read(&backup, name)) {
            (fault, Ok((_, value))) => {
                let note = Some(format!("{shown}: {fault}; {name}.bak was read instead"));
                Self { path, value: Some(value), fault: Some(fault.to_string()), note, ..Self::default() }
            }
            // Neither is there: a store without this configuration.
            (Fault::Missing, Err(Fault::Missing)) => Self { path, ..Self::default() },
            (fault, Err(other)) => {
                let note = Some(format!("{shown}: {fault}; {name}.bak: {other}"));
                let (fault, other) = (fault.to_string(), other.to_string());
                Self { path, value: None, fault: Some(fault), backup_fault: Some(other), note, database: None }
            }
        }
    }

    /// What is configured, or `None` where neither the file nor its backup is there.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where one is there and neither can be read: what is saved then would take the place of what they hold.
    /// [`Error::Unsupported`] where there is no file, as a broker of 5.x keeps the configuration in a database.
    pub fn required(&self) -> Result<Option<&Value>> {
        if let (None, Some(fault), Some(other)) = (&self.value, &self.fault, &self.backup_fault) {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let reason = format!("{fault}; {name}.bak: {other}; mend one of them, or remove both");
            return Err(Error::Corrupt { path: self.path.clone(), offset: 0, reason });
        }
        if let (None, Some(path)) = (&self.value, &self.database) {
            let reason = format!("{}; {}", self.kept_elsewhere(), way_out(path));
            return Err(Error::Unsupported { path: path.clone(), reason });
        }
        Ok(self.value.as_ref())
    }

    /// What a person should know: that a backup was read, that a database was not.
    pub fn notes(&self) -> Vec<String> {
        self.note.clone().into_iter().chain(self.database_note()).collect()
    }

    /// What a person should know of databases in which a broker of 5.x keeps what files of a store say otherwise.
    pub fn database_notes(root: &Path) -> impl Iterator<Item = String> {
        DATABASES.into_iter().filter_map(move |(name, _)| Self::load(root, name).database_note())
    }

    fn database_note(&self) -> Option<String> {
        let path = self.database.as_ref()?;
        let rest = match self.value {
            Some(_) => "the file, which may be older, is taken".to_owned(),
            None => way_out(path),
        };
        Some(format!("{}: {}; {rest}", path.display(), self.kept_elsewhere()))
    }

    fn kept_elsewhere(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("a broker of 5.x keeps in this RocksDB database what {name} says otherwise, and it is not read here")
    }

    /// Whether nothing is configured, neither in a file nor in a database.
    pub fn is_missing(&self) -> bool {
        self.value.is_none() && self.database.is_none()
    }

    /// The names in `topicConfigTable`.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        let table = self.value.as_ref().and_then(|value| value.get("topicConfigTable")).and_then(Value::as_object);
        table.into_iter().flat_map(|table| table.keys().map(String::as_str))
    }

    /// How many queues a topic of `topicConfigTable` has: those that are read, or written to, whichever are more.
    pub fn queue_nums(&self, topic: &str) -> Option<u64> {
        let config = self.value.as_ref()?.get("topicConfigTable")?.get(topic)?;
        let nums = ["readQueueNums", "writeQueueNums"].map(|name| config.get(name).and_then(Value::as_u64));
        nums.into_iter().flatten().max()
    }
}

/// Where the database is that takes the place of the file `name`; RocksDB has a file `CURRENT` in each.
fn database(root: &Path, name: &str) -> Option<PathBuf> {
    let (_, own) = DATABASES.iter().find(|(file, _)| *file == name)?;
    let paths = [DATABASE_V2, own].map(|directory| root.join("config").join(directory));
    paths.into_iter().find(|path| path.join("CURRENT").is_file())
}

/// How the configuration is had all the same: `mqadmin` writes the files for databases of the first kind only.
fn way_out(database: &Path) -> String {
    if database.ends_with(DATABASE_V2) {
        return "ask the running broker for it (`rmqfast topic`, `rmqfast group`)".to_owned();
    }
    let kinds = DATABASES.map(|(_, directory)| directory).join(";");
    format!("`mqadmin rocksDBConfigToJson -b BROKER -t '{kinds}'` has the running broker write the files")
}

/// Why a file gives no configuration.
#[derive(Debug)]
pub(super) enum Fault {
    Missing,
    Unreadable(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Unreadable(reason) => reason,
        })
    }
}

/// The text at `path` and what it says, if that is what the file `name` may say.
pub(super) fn read(path: &Path, name: &str) -> Result<(Vec<u8>, Value), Fault> {
    let text = read_text(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Fault::Missing,
        _ => Fault::Unreadable(error.to_string()),
    })?;
    if text.trim_ascii().is_empty() {
        return Err(Fault::Unreadable("empty".to_owned()));
    }
    let value = config::parse(&text).map_err(|e| Fault::Unreadable(e.to_string()))?;
    config::check(name, &value).map_err(Fault::Unreadable)?;
    Ok((text, value))
}

/// Never more than is read of a configuration, and of files only: anything else, as a pipe, could block.
fn read_text(path: &Path) -> io::Result<Vec<u8>> {
    let meta = fs::metadata(path)?;
    let len = usize::try_from(meta.len()).unwrap_or(usize::MAX);
    if !meta.is_file() {
        return Err(io::Error::other("expected a file"));
    }
    if len > config::MAX_LEN {
        return Err(io::Error::other(config::ConfigError::TooLong(len)));
    }
    let mut text = Vec::with_capacity(len);
    fs::File::open(path)?.take(config::MAX_LEN as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}
