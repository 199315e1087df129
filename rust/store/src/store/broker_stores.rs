//! Finds the stores of several brokers: those in one directory, such as a mirror's copies, or those that match a
//! pattern.
use super::newest_copy::{CopyNote, newest_copy};
use crate::file::place;
use crate::{Error, Result};
use glob::Pattern;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Directories of stores, by the name of the broker.
pub type BrokerStores = BTreeMap<String, PathBuf>;

/// Returns the stores at a path, by the name of the broker. `None` if the path is one store itself, or has none.
///
/// A path with `*`, `?` or `[...]` that does not exist is a pattern. A store is named after its directory, or after
/// the last part of the path that the pattern leaves open. A copy of a mirror is named in its note; of several copies
/// of a broker, the newest counts.
///
/// # Errors
/// A pattern that nothing matches, two stores of one name, or a directory that cannot be read.
pub fn find_broker_stores(path: &Path) -> Result<Option<BrokerStores>> {
    if is_store(path)? {
        return Ok(None);
    }
    if is_pattern(path) && !place::exists(path)? {
        let found = match_pattern(path)?;
        if found.is_empty() {
            let reason = "no RocketMQ store: expected a directory with commitlog/ that matches this pattern, got none";
            return Err(Error::Unsupported { path: path.to_path_buf(), reason: reason.into() });
        }
        return by_broker(found).map(Some);
    }
    let mut found = Vec::new();
    for path in place::list(path)? {
        if is_store(&path)? {
            found.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path));
        }
    }
    if found.is_empty() { Ok(None) } else { by_broker(found).map(Some) }
}

fn is_store(path: &Path) -> Result<bool> {
    place::is_directory(&path.join("commitlog"))
}

fn is_pattern(path: &Path) -> bool {
    path.components().any(|part| is_open(part.as_os_str().to_string_lossy().as_ref()))
}

/// Returns whether a part of a path has wildcards.
fn is_open(part: &str) -> bool {
    part.contains(['*', '?', '['])
}

/// Returns the stores that match a pattern, each with the last part of its path that the pattern leaves open.
fn match_pattern(path: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = vec![(String::new(), PathBuf::new())];
    for part in path.components() {
        let text = part.as_os_str().to_string_lossy();
        if !matches!(part, Component::Normal(_)) || !is_open(&text) {
            found.iter_mut().for_each(|(_, path)| path.push(part));
            continue;
        }
        let pattern = Pattern::new(&text).map_err(|error| Error::invalid("path", "a pattern", error))?;
        let mut matches = Vec::new();
        for (_, directory) in found {
            // an empty path is the current directory
            let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
            // a file matches the part before, too
            if !place::is_directory(&directory)? {
                continue;
            }
            for path in place::list(&directory)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // as in a shell, only a pattern that begins with a dot matches hidden names
                if pattern.matches(&name) && name.starts_with('.') == text.starts_with('.') {
                    matches.push((name, path));
                }
            }
        }
        found = matches;
    }
    let mut stores = Vec::new();
    for (name, path) in found {
        if is_store(&path)? {
            stores.push((name, path));
        }
    }
    Ok(stores)
}

/// Returns the stores by broker: of several copies of a broker the newest one.
fn by_broker(found: Vec<(String, PathBuf)>) -> Result<BrokerStores> {
    let paths: Vec<PathBuf> = found.iter().map(|(_, path)| path.clone()).collect();
    let mut stores = BrokerStores::new();
    for (name, path) in found {
        let (name, path) = match CopyNote::load(&path)?.broker_name {
            Some(broker) => {
                let newest = newest_copy(&path.with_file_name(&broker))?;
                // a copy of another cluster's broker of this name is not among them
                (broker, if paths.contains(&newest) { newest } else { path })
            }
            // without a note, a number at the end belongs to the name
            None => (name, path),
        };
        if let Some(other) = stores.insert(name.clone(), path.clone()).filter(|other| *other != path) {
            let got = format!("{} and {}; name them, as {{\"broker-a\": path, ...}}", other.display(), path.display());
            return Err(Error::invalid("path", format!("one store of {name}"), got));
        }
    }
    Ok(stores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn make_store(directory: &Path, name: &str, copy_of: Option<&str>) {
        fs::create_dir_all(directory.join(name).join("commitlog")).expect("made");
        if let Some(broker) = copy_of {
            let note = format!(r#"{{"brokerName": "{broker}"}}"#);
            fs::write(directory.join(name).join("mirror.json"), note).expect("written");
        }
    }

    fn found(path: &Path) -> Vec<(String, String)> {
        let stores = find_broker_stores(path).expect("found").unwrap_or_default();
        let file_name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        stores.iter().map(|(name, path)| (name.clone(), file_name(path).unwrap_or_default())).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, path)| ((*name).to_owned(), (*path).to_owned())).collect()
    }

    #[test]
    fn a_directory_has_the_stores_below_it_and_a_store_has_none() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["broker-a", "broker-b", "broker-b.2"] {
            make_store(dir.path(), name, None);
        }
        fs::create_dir(dir.path().join("logs")).expect("made");
        fs::write(dir.path().join("readme"), "").expect("written");
        // without the note of a mirror, a number at the end is a part of the name
        let all = pairs(&[("broker-a", "broker-a"), ("broker-b", "broker-b"), ("broker-b.2", "broker-b.2")]);
        assert_eq!(found(dir.path()), all);
        assert_eq!(found(&dir.path().join("broker-a")), []);
        assert_eq!(found(&dir.path().join("logs")), []);
        assert_eq!(found(&dir.path().join("nowhere")), []);
    }

    #[test]
    fn the_newest_copy_of_a_broker_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        make_store(dir.path(), "a", Some("a"));
        make_store(dir.path(), "a.2", Some("a"));
        make_store(dir.path(), "b.3", Some("b"));
        make_store(dir.path(), "a.4", Some("a.4"));
        assert_eq!(found(dir.path()), pairs(&[("a", "a.2"), ("a.4", "a.4"), ("b", "b.3")]));
        assert_eq!(found(&dir.path().join("a*")), pairs(&[("a", "a.2"), ("a.4", "a.4")]));
    }

    #[test]
    fn a_pattern_names_a_store_by_the_part_that_it_leaves_open() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["x/broker-a/store", "x/broker-b/store", "y/broker-c/store", "x/.hidden/store", "x/[odd]/store"] {
            make_store(dir.path(), name, None);
        }
        fs::create_dir_all(dir.path().join("x/empty/store")).expect("made");
        fs::write(dir.path().join("z"), "").expect("written");
        let names = |pattern: &str| {
            let stores = find_broker_stores(&dir.path().join(pattern)).expect("found").unwrap_or_default();
            stores.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(names("x/broker-*/store"), ["broker-a", "broker-b"]);
        assert_eq!(names("?/broker-[ac]/store"), ["broker-a", "broker-c"]);
        // a path that exists is no pattern
        assert_eq!(names("x/[odd]/store"), [""; 0]);
        assert_eq!(names("x/[[]odd]/store"), ["[odd]"]);
    }

    #[test]
    fn no_match_and_two_stores_of_one_name_are_told() {
        let dir = tempfile::tempdir().expect("a directory");
        make_store(dir.path(), "x/broker-a", None);
        make_store(dir.path(), "y/broker-a", None);
        let error = |pattern: &str| find_broker_stores(&dir.path().join(pattern)).expect_err("refused").to_string();
        let expected = "expected a directory with commitlog/ that matches this pattern, got none";
        assert!(error("broker-*").ends_with(expected), "{}", error("broker-*"));
        let twice = error("*/broker-*");
        assert!(twice.starts_with("path: expected one store of broker-a, got "), "{twice}");
        assert!(error("[").starts_with("path: expected a pattern, got "), "{}", error("["));
    }
}
