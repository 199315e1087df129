//! An exclusive file lock against other processes, including Java programs that call `FileChannel.tryLock(0, 1,
//! false)`.
//!
//! On Unix it is a POSIX lock of the process (`fcntl`, not `flock`). A second lock within the same process succeeds,
//! and closing the file anywhere in the process releases it. On Windows it is `LockFileEx` on the open file.
use std::fs::File;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Id of the process. `None` if the operating system does not report it, for example for a process in another
    /// container.
    pub process: Option<u32>,
}

/// Takes the lock, which lasts until the file is closed. Returns false if another process holds it.
pub fn try_lock(file: &File) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use rustix::fs::{FlockOperation, fcntl_lock};
        use rustix::io::Errno;
        match fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
    #[cfg(windows)]
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Returns the other process that holds the lock, if any.
pub fn holder(file: &File) -> Option<Holder> {
    #[cfg(unix)]
    {
        use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};
        let (typ, offset_type) = (FlockType::WriteLock, FlockOffsetType::Set);
        let lock = fcntl_getlk(file, &Flock { start: 0, length: 1, pid: None, typ, offset_type }).ok().flatten()?;
        Some(Holder { process: lock.pid.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok()) })
    }
    #[cfg(windows)]
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map_or(None, |()| None),
        Err(_) => Some(Holder { process: None }),
    }
}
