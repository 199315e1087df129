//! Permissions of the files that a store creates. Only the owner may open them, unless the store was opened with another mode.
//!
//! The umask is ignored, since services often run with 022, with which everybody could read message bodies.
use crate::{Error, Result};
use rmqfast_os::mode as os_mode;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

pub const OWNER_ONLY: u32 = 0o600;

static OTHERS: RwLock<Vec<(PathBuf, u32)>> = RwLock::new(Vec::new());

/// Sets the mode of all files created below a directory, until it is dropped.
#[derive(Debug)]
#[must_use = "dropped, it holds no more"]
pub struct Permission(Option<PathBuf>);

impl Permission {
    /// Sets the mode of files below `root`. Directories also get execute permission for everybody to whom `mode` gives read permission.
    pub fn hold(root: &Path, mode: u32) -> Self {
        // The default mode needs no entry in the list.
        if mode == OWNER_ONLY {
            return Self(None);
        }
        OTHERS.write().unwrap_or_else(PoisonError::into_inner).push((root.to_path_buf(), mode));
        Self(Some(root.to_path_buf()))
    }
}

impl Drop for Permission {
    fn drop(&mut self) {
        let Some(root) = &self.0 else { return };
        let mut others = OTHERS.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = others.iter().position(|(place, _)| place == root) {
            others.remove(at);
        }
    }
}

/// Opens the file at `path` with `options`, which must create the file.
pub fn open_new(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let mode = mode_of(path);
    let file = os_mode::open(options, path, mode)?;
    if mode != OWNER_ONLY {
        os_mode::set(&file, mode)?; // Again, since the umask applies to `open`.
    }
    Ok(file)
}

pub fn create(path: &Path) -> io::Result<File> {
    open_new(OpenOptions::new().write(true).create(true).truncate(true), path)
}

pub fn create_directories(path: &Path) -> Result<()> {
    let mode = mode_of(path);
    // Reading a directory needs execute permission as well.
    let entered = mode | (mode & 0o444) >> 2;
    os_mode::create_directories(path, entered).map_err(|e| Error::io(path, e))
}

fn mode_of(path: &Path) -> u32 {
    let others = OTHERS.read().unwrap_or_else(PoisonError::into_inner);
    others.iter().find(|(root, _)| path.starts_with(root)).map_or(OWNER_ONLY, |(_, mode)| *mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn files_are_their_owners_unless_another_permission_is_held() {
        let dir = tempfile::tempdir().expect("dir");
        let (store, other) = (dir.path().join("store"), dir.path().join("other"));
        for (held, file, directory) in [(OWNER_ONLY, 0o600, 0o700), (0o640, 0o640, 0o750), (0o664, 0o664, 0o775)] {
            let _held = Permission::hold(&store, held);
            for (root, file, directory) in [(&store, file, directory), (&other, 0o600, 0o700)] {
                let deep = root.join("consumequeue/orders");
                create_directories(&deep).expect("made");
                drop(create(&deep.join("0")).expect("made"));
                assert_eq!(mode(&deep.join("0")), file, "{held:o}");
                // A umask of 022 removes the write permission of directories.
                assert_eq!(mode(&deep) | 0o020, directory | 0o020, "{held:o}");
                std::fs::remove_dir_all(root).expect("removed");
            }
        }
    }
}
