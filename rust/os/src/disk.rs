//! The disk of a directory: free space, synchronization, and renames.
use std::io;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    /// Free bytes, including the reserve of root.
    pub free: u64,
    /// Free bytes that any user may use.
    pub usable: u64,
}

/// Returns the space of the file system of `path`.
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

/// Waits until everything written to the file system of `directory` is on the disk. Fails with the error of the operating
/// system; [`io::ErrorKind::Unsupported`] if the system has no call for this. The caller must then synchronize each file.
pub fn sync_file_system(directory: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::fs::syncfs(std::fs::File::open(directory)?)?);
    #[cfg(not(target_os = "linux"))]
    // `sync` on macOS starts the writes but does not wait
    return directory.metadata().and_then(|_| Err(io::ErrorKind::Unsupported.into()));
}

/// Waits until creations and removals of names in `directory` are on the disk.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return std::fs::File::open(directory).and_then(|open| open.sync_all());
    // Windows cannot synchronize a directory, but NTFS journals names
    #[cfg(windows)]
    return directory.metadata().map(drop);
}

/// Renames a directory, but only if the new name is free. Fails with [`io::ErrorKind::AlreadyExists`], or the error of the
/// operating system.
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
    // an empty directory created between the two calls would be replaced
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    std::fs::rename(from, to)
}
