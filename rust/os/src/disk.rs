//! The disk below a directory: its room, what waits for it, and names that change on it.
use std::io;
use std::path::Path;

/// Bytes of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    /// Those that are free, with what is kept for the system's owner.
    pub free: u64,
    /// Those that anybody may have.
    pub usable: u64,
}

/// Returns the room of the disk that `path` is on.
///
/// # Errors
/// What the operating system says.
pub fn space(path: &Path) -> io::Result<Space> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Ok(Space { total: bytes(disk.f_blocks), free: bytes(disk.f_bfree), usable: bytes(disk.f_bavail) })
    }
    #[cfg(windows)]
    {
        let disk = fs4::statvfs(path)?;
        Ok(Space { total: disk.total_space(), free: disk.free_space(), usable: disk.available_space() })
    }
}

/// Waits until all that was written to the file system that `directory` is on is on the disk.
///
/// # Errors
/// What the operating system says; [`io::ErrorKind::Unsupported`] where it has no such call: wait for each file then.
pub fn sync_file_system(directory: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::fs::syncfs(std::fs::File::open(directory)?)?);
    #[cfg(not(target_os = "linux"))]
    // `sync` of macOS begins to write, and does not wait
    return directory.metadata().and_then(|_| Err(io::ErrorKind::Unsupported.into()));
}

/// Waits until the names in `directory` are on the disk.
///
/// # Errors
/// What the operating system says.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return std::fs::File::open(directory).and_then(|open| open.sync_all());
    // a directory cannot be waited for there; NTFS has a journal of names
    #[cfg(windows)]
    return directory.metadata().map(drop);
}

/// Gives a directory another name, where nothing has that name yet.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`], or what the operating system says.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // not every file system knows NOREPLACE
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            other => return Ok(other?),
        }
    }
    // what comes between the two calls is replaced, if it is an empty directory
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    std::fs::rename(from, to)
}
