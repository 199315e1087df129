//! The directory `OUT.partial` of an unfinished export to `OUT`. It is renamed to `OUT` once everything is on the disk.
use crate::file::disk::{self, Call, sync_directory};
use crate::file::{StoreLock, lock, mounts, place};
use crate::store::MessageStore;
use crate::{Error, Result};
use rmqfast_os::disk::rename_new;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Owns and locks the directory. Dropping it removes the directory, unless [`finish`](Self::finish) was called.
#[derive(Debug)]
pub struct Partial {
    out: PathBuf,
    path: PathBuf,
    lock: Option<StoreLock>,
    is_finished: bool,
}

impl Partial {
    /// Creates and locks `OUT.partial`. Removes what a killed export left there. Fails with [`Error::Invalid`] if `out`
    /// exists, [`Error::Busy`] if another process is exporting to `out`.
    pub fn create(out: &Path) -> Result<Self> {
        if place::exists(out)? {
            return Err(Error::invalid("out", "a path where nothing is yet", out.display()));
        }
        let mut name = out.file_name().map(OsString::from).unwrap_or_default();
        name.push(".partial");
        let path = out.with_file_name(name);
        match fs::create_dir(&path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => refuse_others(&path)?,
            other => other.map_err(|e| Error::io(&path, e))?,
        }
        // Lock before the clean-up, since another export may be running there.
        let lock = StoreLock::acquire(&path)?;
        clear(&path)?;
        lock.mark()?;
        Ok(Self { out: out.to_path_buf(), path, lock: Some(lock), is_finished: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the directory to `OUT`. Fails with [`Error::Invalid`] if `OUT` has been created meanwhile.
    pub fn finish(mut self) -> Result<()> {
        sync_directory(&self.path)?;
        let renamed = disk::call(Call::Rename, &self.out, || rename_new(&self.path, &self.out));
        match renamed {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::invalid("out", "a path where nothing is yet", self.out.display()));
            }
            other => other?,
        }
        self.is_finished = true;
        let parent = self.out.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_directory(parent.unwrap_or(Path::new(".")))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_finished {
            // Remove it while it is still locked, so that no other export begins meanwhile.
            let _ = fs::remove_dir_all(&self.path);
        }
        drop(self.lock.take());
    }
}

/// Fails if the directory `path` is neither empty nor left by an export.
fn refuse_others(path: &Path) -> Result<()> {
    // An unfinished export has a lock file, but no file `abort`, which a store in use has.
    let is_ours = place::is_file(&path.join(lock::NAME))? && !place::exists(&path.join("abort"))?;
    let is_empty = place::list(path)?.is_empty();
    if is_ours || is_empty {
        return Ok(());
    }
    Err(Error::invalid("out", "a path beside which OUT.partial is free", path.display()))
}

fn clear(path: &Path) -> Result<()> {
    for entry in fs::read_dir(path).map_err(|e| Error::io(path, e))? {
        let entry = entry.map_err(|e| Error::io(path, e))?;
        if entry.file_name() == lock::NAME {
            continue;
        }
        let path = entry.path();
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(|e| Error::io(&path, e))?;
    }
    Ok(())
}

/// Fails if `out` is inside the source store, since an export must not change its source.
pub fn refuse_within(store: &MessageStore, out: &Path) -> Result<()> {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = parent.canonicalize().map_err(|e| Error::io(parent, e))?;
    if out.file_name().is_none() {
        return Err(Error::invalid("out", "a path that ends in a name", out.display()));
    }
    let log = store.log().segments().files().iter().filter_map(|file| file.path.parent());
    // A store that is elsewhere holds no local directory.
    for directory in log.chain([store.root()]).filter(|directory| !mounts::is_mounted(directory)) {
        let directory = directory.canonicalize().map_err(|e| Error::io(directory, e))?;
        if parent.starts_with(&directory) {
            return Err(Error::invalid("out", "a path outside of the store", out.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stands_at_its_place_before_it_is_finished() {
        let dir = tempfile::tempdir().expect("dir");
        let out = dir.path().join("out");
        let names = || {
            let names = fs::read_dir(dir.path()).expect("read").map(|entry| entry.expect("read").file_name());
            names.collect::<Vec<_>>()
        };
        let partial = Partial::create(&out).expect("made");
        fs::write(partial.path().join("left"), b"over").expect("written");
        assert_eq!(names(), ["out.partial"]);
        assert!(matches!(Partial::create(&out), Err(Error::Busy { .. })));
        drop(partial);
        assert!(names().is_empty());
        Partial::create(&out).expect("made").finish().expect("named");
        assert_eq!(names(), ["out"]);
        assert!(matches!(Partial::create(&out), Err(Error::Invalid { .. })));
    }

    #[test]
    fn what_a_process_that_died_left_is_removed_and_what_others_made_is_not() {
        let dir = tempfile::tempdir().expect("dir");
        let (out, left) = (dir.path().join("out"), dir.path().join("out.partial"));
        fs::create_dir_all(left.join("commitlog")).expect("made");
        fs::write(left.join("lock"), b"lock").expect("written");
        Partial::create(&out).expect("made").finish().expect("named");
        assert!(!out.join("commitlog").exists());
        fs::remove_dir_all(&out).expect("removed");
        fs::create_dir_all(left.join("mine")).expect("made");
        assert!(matches!(Partial::create(&out), Err(Error::Invalid { .. })));
        assert!(left.join("mine").is_dir());
    }

    #[test]
    fn what_came_to_be_there_meanwhile_stays() {
        let dir = tempfile::tempdir().expect("dir");
        let out = dir.path().join("out");
        let partial = Partial::create(&out).expect("made");
        fs::create_dir(&out).expect("made");
        assert!(matches!(partial.finish(), Err(Error::Invalid { .. })));
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 1);
    }
}
