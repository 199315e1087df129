//! Saves a configuration atomically. After a crash or a power loss a reader finds the old file or the new file.
//!
//! The text is written to `NAME.tmp`, which no broker reads, then flushed and renamed. Before that, the previous file becomes
//! `NAME.bak` in the same way. An unreadable file does not replace a good backup.
//!
//! Source: `ConfigManager.persist`, `MixAll.string2File`. RocketMQ does not flush, and for a moment has no file of that name.
use super::config_files::{Fault, read};
use crate::file::disk::sync_directory;
use crate::file::permission::create_directories;
use crate::file::place;
use crate::file::replace::replace;
use crate::format::config::{self, MAX_LEN};
use crate::{Error, Result};
use serde_json::Value;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

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
    use crate::store::config_files::ConfigFile;
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
