//! Finds the directory of a broker's newest copy. A mirror that cannot continue its copy starts a new copy, in
//! another directory with the same parent.
use crate::file::place;
use crate::{Error, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};

const NOTE: &str = "mirror.json";

/// Returns the newest copy of the broker that `directory` (here `DIR`) is named after. This is `DIR` itself, or the
/// last restarted copy beside it, such as `DIR.2`. Another broker may be called `DIR.2`, so the note in each copy
/// decides. If `DIR` is a restarted copy of another broker, this broker has no copy yet, and the result is the first
/// free name.
pub fn newest_copy(directory: &Path) -> Result<PathBuf> {
    let Some(name) = directory.file_name().map(|name| name.to_string_lossy().into_owned()) else {
        return Ok(directory.to_owned());
    };
    let mut newest = None;
    for number in numbers_beside(directory, &name)? {
        // A directory without a note is not a copy of a mirror, so its name alone counts.
        if CopyNote::load(&with_number(directory, number))?.broker_name.is_none_or(|broker| broker == name) {
            newest = newest.max(Some(number));
        }
    }
    if let Some(number) = newest {
        return Ok(with_number(directory, number));
    }
    match CopyNote::load(directory)?.broker_name {
        Some(other) if is_number(name.strip_prefix(&format!("{other}.")).unwrap_or_default()) => {
            // Restarted copies are numbered from 2, because the first copy has no number.
            let mut number = 2;
            while place::exists(&with_number(directory, number))? {
                number += 1;
            }
            Ok(with_number(directory, number))
        }
        _ => Ok(directory.to_owned()),
    }
}

/// The note that a mirror writes into its copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyNote {
    /// Names of the copied topics; empty if all topics are copied.
    pub topics: Vec<String>,
    pub broker_name: Option<String>,
}

impl CopyNote {
    /// Reads the note in a directory. A missing note counts as an empty note.
    pub fn load(directory: &Path) -> Result<Self> {
        let path = directory.join(NOTE);
        let Some(text) = place::read(&path, u64::MAX)? else { return Ok(Self::default()) };
        let note: Value = serde_json::from_slice(&text).map_err(|error| {
            let reason = format!("expected the note of a mirror, got {error}");
            Error::Corrupt { path: path.clone(), offset: 0, reason }
        })?;
        let topics = note.get("topics").and_then(Value::as_array).into_iter().flatten();
        Ok(Self {
            topics: topics.filter_map(Value::as_str).map(str::to_owned).collect(),
            broker_name: note.get("brokerName").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

fn with_number(directory: &Path, number: u32) -> PathBuf {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    directory.with_file_name(name)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the numbers of the directories `NAME.NUMBER` with the same parent as `directory`.
fn numbers_beside(directory: &Path, name: &str) -> Result<Vec<u32>> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let first = format!("{name}.");
    let mut numbers = Vec::new();
    for path in place::list(parent)? {
        let file_name = path.file_name().and_then(|name| name.to_str());
        let number = file_name.and_then(|text| text.strip_prefix(&first)).filter(|text| is_number(text));
        let Some(number) = number.and_then(|text| text.parse::<u32>().ok()) else { continue };
        if place::is_directory(&path)? {
            numbers.push(number);
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_copy(directory: &Path, name: &str, broker_name: &str) {
        std::fs::create_dir(directory.join(name)).expect("made");
        let note = format!(r#"{{"brokerClusterName": "C", "brokerName": "{broker_name}"}}"#);
        std::fs::write(directory.join(name).join(NOTE), note).expect("written");
    }

    #[test]
    fn the_newest_copy_has_the_largest_number() {
        let directory = tempfile::tempdir().expect("a directory");
        let copy = directory.path().join("broker-a");
        assert_eq!(newest_copy(&copy).expect("read"), copy);
        let names =
            ["broker-a", "broker-a.2", "broker-a.10", "broker-a.old", "broker-a.x.11", "broker-a.+12", "broker-b.13"];
        for name in names {
            make_copy(directory.path(), name, "broker-a");
        }
        std::fs::write(directory.path().join("broker-a.14"), "").expect("written");
        assert_eq!(newest_copy(&copy).expect("read"), directory.path().join("broker-a.10"));
        std::fs::create_dir(directory.path().join("broker-a.11")).expect("made");
        assert_eq!(newest_copy(&copy).expect("read"), directory.path().join("broker-a.11"));
        assert_eq!(newest_copy(Path::new("broker-a")).expect("read"), Path::new("broker-a"));
    }

    #[test]
    fn a_broker_whose_name_ends_in_a_number_keeps_its_copy() {
        let directory = tempfile::tempdir().expect("a directory");
        let newest = |name: &str| newest_copy(&directory.path().join(name)).expect("read");
        let at = |name: &str| directory.path().join(name);
        make_copy(directory.path(), "a", "a");
        make_copy(directory.path(), "a.2", "a.2");
        assert_eq!((newest("a"), newest("a.2")), (at("a"), at("a.2")));
        make_copy(directory.path(), "a.3", "a");
        // The mirror of `a` restarted this copy before a broker was called `a.3`.
        assert_eq!((newest("a"), newest("a.3")), (at("a.3"), at("a.3.2")));
        make_copy(directory.path(), "a.3.2", "a.3");
        assert_eq!((newest("a.3"), newest("a.2")), (at("a.3.2"), at("a.2")));
        // A copy of a broker of another cluster was not restarted here. Opening the copy fails later.
        make_copy(directory.path(), "b", "c");
        assert_eq!(newest("b"), at("b"));
    }

    #[test]
    fn a_note_that_cannot_be_read_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        make_copy(directory.path(), "a", "a");
        std::fs::write(directory.path().join("a").join(NOTE), "{").expect("written");
        let error = newest_copy(&directory.path().join("a")).expect_err("no note");
        assert!(error.to_string().contains("expected the note of a mirror"), "{error}");
    }
}
