//! The files below `config/`: read with their `.bak`, and never a reason not to read the store.
//!
//! Source: `ConfigManager.load`, `TopicConfigManager`.
use super::MessageStore;
use crate::format::config;
use crate::{Error, Result};
use serde_json::Value;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// Where topics are configured.
pub const TOPICS: &str = "topics.json";

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
}

impl ConfigFile {
    /// Reads the file `name` below the `config/` of a store, or its `.bak` where that is missing, empty or garbage.
    pub fn load(root: &Path, name: &str) -> Self {
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
                Self { path, value: None, fault: Some(fault), backup_fault: Some(other), note }
            }
        }
    }

    /// What is configured, or `None` where neither the file nor its backup is there.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where one is there and neither can be read: what is saved then would take the place of what they hold.
    pub fn required(&self) -> Result<Option<&Value>> {
        if let (None, Some(fault), Some(other)) = (&self.value, &self.fault, &self.backup_fault) {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let reason = format!("{fault}; {name}.bak: {other}; mend one of them, or remove both");
            return Err(Error::Corrupt { path: self.path.clone(), offset: 0, reason });
        }
        Ok(self.value.as_ref())
    }

    /// The names in `topicConfigTable`.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        let table = self.value.as_ref().and_then(|value| value.get("topicConfigTable")).and_then(Value::as_object);
        table.into_iter().flat_map(|table| table.keys().map(String::as_str))
    }
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

impl MessageStore {
    /// `config/topics.json`; read once.
    pub fn topics_config(&self) -> &ConfigFile {
        self.topics_config.get_or_init(|| ConfigFile::load(self.root(), TOPICS))
    }

    /// What a person should know: a configuration read from its backup, files that do not belong here.
    pub fn notes(&self) -> Vec<String> {
        let strays = self.log().segments().strays().iter();
        let strays =
            strays.map(|path| format!("{}: no segment; a 4.9.4 broker does not start beside it", path.display()));
        self.topics_config().note.clone().into_iter().chain(strays).collect()
    }
}
