//! What stands at a path, and what a directory lists: the one place that tells a file that is not there from one that cannot be looked at.
//!
//! Retention removes files of a live store between the listing of a directory and the look at a name: such a file is gone, which is no
//! error. A symbolic link whose target is not there, as of an archive that is not mounted, is listed and leads nowhere: that is damage.
//! Whatever else the operating system says (no permission, a stale handle, a failing disk) is an error, and never an absence.
use super::disk::{self, Look};
use crate::{Error, Result};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// What stands at a path.
#[derive(Debug)]
pub enum Place {
    /// There is no such name.
    Absent,
    /// A symbolic link whose target is not there.
    DeadLink,
    /// A file, a directory or anything else, links followed.
    There(Metadata),
}

impl Place {
    /// Looks at `path`.
    pub fn look(path: &Path) -> Result<Self> {
        let error = match disk::look(Look::Stat, path, || fs::metadata(path)) {
            Ok(meta) => return Ok(Self::There(meta)),
            Err(error) => error,
        };
        if !is_absence(&error) {
            return Err(Error::io(path, error));
        }
        match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_symlink() => Ok(Self::DeadLink),
            // it was made between the two looks
            Ok(_) => fs::metadata(path).map(Self::There).map_err(|e| Error::io(path, e)),
            Err(error) if is_absence(&error) => Ok(Self::Absent),
            Err(error) => Err(Error::io(path, error)),
        }
    }

    /// What the operating system says of what is there; `None` where there is nothing.
    pub fn metadata(path: &Path) -> Result<Option<Metadata>> {
        match Self::look(path)? {
            Self::There(meta) => Ok(Some(meta)),
            Self::DeadLink => Err(no_file(path)),
            Self::Absent => Ok(None),
        }
    }
}

/// Whether anything has this name, be it a link that leads nowhere.
pub fn exists(path: &Path) -> Result<bool> {
    Place::look(path).map(|place| !matches!(place, Place::Absent))
}

/// Whether there is a file at `path`.
pub fn is_file(path: &Path) -> Result<bool> {
    Place::metadata(path).map(|meta| meta.is_some_and(|meta| meta.is_file()))
}

/// Whether there is a directory at `path`.
pub fn is_directory(path: &Path) -> Result<bool> {
    Place::metadata(path).map(|meta| meta.is_some_and(|meta| meta.is_dir()))
}

/// Says that there is a directory at `path`.
///
/// # Errors
/// As [`Place::metadata`]; [`Error::Io`] for nothing, and for anything else.
pub fn require_directory(path: &Path) -> Result<()> {
    match Place::metadata(path)? {
        Some(meta) if meta.is_dir() => Ok(()),
        // for its own words
        _ => fs::read_dir(path).map(drop).map_err(|e| Error::io(path, e)),
    }
}

/// The paths that a directory lists, in no order; none where it is not there.
pub fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    let paths = disk::look(Look::List, directory, || {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()
    });
    match paths {
        Err(error) if error.kind() == ErrorKind::NotFound => absent(directory).map(|()| Vec::new()),
        paths => paths.map_err(|e| Error::io(directory, e)),
    }
}

/// As [`list`]: the names alone, without those that are no UTF-8, which no file of a store has.
pub fn names(directory: &Path) -> Result<Vec<String>> {
    let paths = list(directory)?;
    Ok(paths.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
}

/// Opens with `open` what is at `path`. An error that it is not there means just that: a link that leads nowhere is another one.
pub fn open<T>(path: &Path, open: impl FnOnce() -> io::Result<T>) -> Result<T> {
    let opened = disk::look(Look::Open, path, open);
    if opened.as_ref().is_err_and(is_absence) {
        absent(path)?;
    }
    opened.map_err(|e| Error::io(path, e))
}

/// The bytes of the file at `path`, `most` of them at most; `None` where there is none.
///
/// # Errors
/// As [`open`]; [`Error::Corrupt`] for what is no file, too: a pipe could block.
pub fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    match Place::metadata(path)? {
        None => return Ok(None),
        Some(meta) if !meta.is_file() => {
            return Err(Error::Corrupt { path: path.to_path_buf(), offset: 0, reason: "expected a file".to_owned() });
        }
        Some(_) => {}
    }
    let file = match open(path, || File::open(path)) {
        Err(error) if error.is_not_found() => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    disk::look(Look::Read, path, || file.take(most).read_to_end(&mut bytes)).map_err(|e| Error::io(path, e))?;
    Ok(Some(bytes))
}

/// The error of a symbolic link that leads nowhere, or of a directory in the place of a file.
pub fn no_file(path: &Path) -> Error {
    Error::Corrupt { path: path.to_path_buf(), offset: 0, reason: no_file_reason(path) }
}

/// The reason of [`no_file`].
pub fn no_file_reason(path: &Path) -> String {
    if fs::metadata(path).is_ok() {
        return "expected a file, got another thing of its name, as a directory: remove that".to_owned();
    }
    let target = fs::read_link(path).map_or_else(|_| "a place".to_owned(), |target| target.display().to_string());
    format!("a symbolic link to {target}, which is not there: mount what it leads to, or remove the link")
}

/// Says that nothing has this name.
fn absent(path: &Path) -> Result<()> {
    match Place::look(path)? {
        Place::DeadLink => Err(no_file(path)),
        // gone, or made since: whoever asks found nothing
        Place::Absent | Place::There(_) => Ok(()),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

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
}
