//! Looks up paths and lists directories. Only this module decides whether a file is missing or cannot be examined:
//!
//! - No such name: not an error, since retention may remove a file between a listing and a look-up.
//! - A symbolic link without a target, for example into an archive that is not mounted: damage.
//! - Anything else (no permission, a stale handle, a failing disk): an error. The file does not count as missing.
//!
//! All answers come from the [`Storage`](super::Storage) of the path.
use super::mounts;
use super::storage::{Entry, Stat};
use crate::{Error, Result};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

pub use super::local::{no_file, no_file_reason, open};
pub use super::storage::Place;

impl Place {
    pub fn look(path: &Path) -> Result<Self> {
        mounts::with(path, |storage| storage.look(path))
    }

    /// Returns the metadata, or `None` if the name does not exist. A dead link is [`Error::Corrupt`].
    pub fn metadata(path: &Path) -> Result<Option<Stat>> {
        match Self::look(path)? {
            Self::There(stat) => Ok(Some(stat)),
            Self::DeadLink => Err(no_file(path)),
            Self::Absent => Ok(None),
        }
    }
}

impl Entry {
    pub fn look(&self) -> Result<Place> {
        self.stat.map_or_else(|| Place::look(&self.path), |stat| Ok(Place::There(stat)))
    }

    /// Returns whether the entry is a directory. A dead link is [`Error::Corrupt`].
    pub fn is_directory(&self) -> Result<bool> {
        self.stat.map_or_else(|| is_directory(&self.path), |stat| Ok(stat.is_dir()))
    }
}

/// Returns whether the name exists, even as a dead link.
pub fn exists(path: &Path) -> Result<bool> {
    Place::look(path).map(|place| !matches!(place, Place::Absent))
}

pub fn is_file(path: &Path) -> Result<bool> {
    Place::metadata(path).map(|meta| meta.is_some_and(|meta| meta.is_file()))
}

pub fn is_directory(path: &Path) -> Result<bool> {
    Place::metadata(path).map(|meta| meta.is_some_and(|meta| meta.is_dir()))
}

pub fn require_directory(path: &Path) -> Result<()> {
    match Place::metadata(path)? {
        Some(stat) if stat.is_dir() => Ok(()),
        // Fails with the operating system's own error.
        _ => fs::read_dir(path).map(drop).map_err(|e| Error::io(path, e)),
    }
}

/// Lists a directory, in no particular order. Empty if the directory does not exist.
pub fn entries(directory: &Path) -> Result<Vec<Entry>> {
    mounts::with(directory, |storage| storage.list(directory))
}

/// Lists the paths in a directory, in no particular order. Empty if the directory does not exist.
pub fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(directory)?.into_iter().map(|entry| entry.path).collect())
}

/// Lists the names in a directory. Skips names that are not UTF-8, since no file of a store has such a name.
pub fn names(directory: &Path) -> Result<Vec<String>> {
    let paths = list(directory)?;
    Ok(paths.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
}

/// Reads up to `most` bytes of the file at `path`. `None` if the file does not exist. Anything but a file is [`Error::Corrupt`].
pub fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    mounts::with(path, |storage| storage.read_small(path, most))
}

const FILE: &str = "file:";

/// Returns the path itself, or the path in a `file:` URL. Other URLs are an error, and so is the empty string, which would mean the current
/// directory. The error says what is expected.
pub fn local_path(given: &OsStr) -> Result<PathBuf, &'static str> {
    if given.is_empty() {
        return Err("a path (. is the current directory)");
    }
    // A path that is not UTF-8 is no URL.
    let Some(text) = given.to_str() else { return Ok(given.into()) };
    match text.get(..FILE.len()) {
        Some(scheme) if scheme.eq_ignore_ascii_case(FILE) && text[FILE.len()..].starts_with('/') => {
            of_file_url(&text[FILE.len()..])
        }
        _ if is_url(text) => {
            Err("a path of this machine, as of a mounted or copied directory (./NAME where it begins with such a name)")
        }
        _ => Ok(given.into()),
    }
}

/// Decodes the part of a `file:` URL behind the colon: `/x`, `///x` or `//localhost/x`. It may be percent-encoded.
fn of_file_url(rest: &str) -> Result<PathBuf, &'static str> {
    const EXPECTED: &str = "a file: URL of this machine, as file:///data/store";
    let path = match rest.strip_prefix("//") {
        Some(path) => path.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(path),
        None => rest,
    };
    // Without a slash this is another host, as in `file://host/x`.
    let path = path.strip_prefix('/').and_then(percent_decode).ok_or(EXPECTED)?;
    Ok(format!("/{}", path.trim_start_matches('/')).into())
}

fn percent_decode(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((plain, escaped)) = rest.split_once('%') {
        bytes.extend_from_slice(plain.as_bytes());
        bytes.push(u8::from_str_radix(escaped.get(..2)?, 16).ok()?);
        rest = &escaped[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

/// Returns whether the string begins like `s3://`, or like `s3:/`, into which libraries for paths shorten `s3://`. A
/// single letter before the colon is a Windows drive, not a URL.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.len() > 1 && scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-');
    rest.starts_with('/') && is_scheme && scheme.chars().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn a_name_that_leads_nowhere_is_told_from_one_that_is_not_there() {
        let dir = tempfile::tempdir().expect("dir");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), b"abc").expect("written");
        symlink(at("gone"), at("dead")).expect("linked");
        symlink(at("file/below"), at("through-a-file")).expect("linked");
        symlink(at("file"), at("sound")).expect("linked");
        assert!(matches!(Place::look(&at("gone")), Ok(Place::Absent)));
        assert!(matches!(Place::look(&at("file/below")), Ok(Place::Absent)));
        assert!(matches!(Place::look(&at("sound")), Ok(Place::There(_))));
        for name in ["dead", "through-a-file"] {
            assert!(matches!(Place::look(&at(name)), Ok(Place::DeadLink)), "{name}");
            assert!(exists(&at(name)).expect("looked at"));
            for error in [is_file(&at(name)).map(drop), is_directory(&at(name)).map(drop), read(&at(name), 9).map(drop)]
            {
                assert!(matches!(error, Err(Error::Corrupt { .. })), "{name}: {error:?}");
            }
        }
        assert!(matches!(list(&at("dead")), Err(Error::Corrupt { .. })));
        assert_eq!((list(&at("gone")).expect("none").len(), list(dir.path()).expect("listed").len()), (0, 4));
        assert_eq!(read(&at("sound"), 2).expect("read"), Some(b"ab".to_vec()));
        assert_eq!(read(&at("gone"), 2).expect("read"), None);
        assert!(matches!(read(dir.path(), 2), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn a_link_to_itself_is_an_error_of_the_system() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("loop");
        symlink(&path, &path).expect("linked");
        assert!(matches!(Place::look(&path), Err(Error::Io { .. })));
        assert!(matches!(list(&path), Err(Error::Io { .. })));
    }

    fn of(text: &str) -> Result<PathBuf, &'static str> {
        local_path(OsStr::new(text))
    }

    #[test]
    fn paths_stay_and_file_urls_are_paths() {
        for path in [".", "store", "/data/a b", "./s3:/x", "a:b", "C:/x", "x:", "file:x", "~/s", " "] {
            assert_eq!(of(path).as_deref(), Ok(Path::new(path)));
        }
        for url in ["file:///data/a%20b", "file:/data/a b", "FILE://localhost/data/a%20b", "file:////data/a b"] {
            assert_eq!(of(url).as_deref(), Ok(Path::new("/data/a b")), "{url}");
        }
        let odd = OsStr::from_bytes(b"s3://\xff");
        assert_eq!(local_path(odd).as_deref(), Ok(Path::new(odd)));
    }

    #[test]
    fn nothing_and_urls_of_other_systems_are_no_paths() {
        for text in ["", "s3://b/out", "s3:/b/out", "hdfs://n:8020/x", "host:/x", "wasb+x.y-z://c", "https://x"] {
            assert!(of(text).is_err(), "{text}");
        }
        for text in ["file://host/x", "file:///a%2", "file:///a%zz", "file:///%ff"] {
            assert!(of(text).expect_err(text).contains("file: URL"), "{text}");
        }
    }
}
