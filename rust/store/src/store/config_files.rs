//! The files below `config/`: read with their `.bak`, and never a reason not to read the store.
//!
//! Source: `ConfigManager.load`, `TopicConfigManager`.
use super::MessageStore;
use crate::format::config;
use serde_json::Value;
use std::path::{Path, PathBuf};

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
    /// What a person should know of where the value is from.
    pub note: Option<String>,
}

impl ConfigFile {
    /// Reads the file `name` below the `config/` of a store, or its `.bak` where that is missing, empty or garbage.
    pub fn load(root: &Path, name: &str) -> Self {
        let path = root.join("config").join(name);
        let fault = match read(&path) {
            Ok(value) => return Self { path, value: Some(value), ..Self::default() },
            Err(fault) => fault,
        };
        let backup = path.with_file_name(format!("{name}.bak"));
        let shown = path.display();
        match read(&backup) {
            Ok(value) => {
                let note = Some(format!("{shown}: {fault}; {name}.bak was read instead"));
                Self { path, value: Some(value), fault: Some(fault), note }
            }
            // Neither is there: a store without this configuration.
            Err(_) if !path.exists() && !backup.exists() => Self { path, ..Self::default() },
            Err(other) => {
                let note = Some(format!("{shown}: {fault}; {name}.bak: {other}"));
                Self { path, value: None, fault: Some(fault), note }
            }
        }
    }

    /// The names in `topicConfigTable`.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        let table = self.value.as_ref().and_then(|value| value.get("topicConfigTable")).and_then(Value::as_object);
        table.into_iter().flat_map(|table| table.keys().map(String::as_str))
    }
}

fn read(path: &Path) -> Result<Value, String> {
    match std::fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err("missing".to_owned()),
        Err(e) => Err(e.to_string()),
        Ok(text) if text.trim_ascii().is_empty() => Err("empty".to_owned()),
        Ok(text) => config::parse(&text).map_err(|e| e.to_string()),
    }
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
