//! Files: reads and writes at a position, and which file a path leads to.
use std::fs::File;
use std::io;
use std::path::Path;

#[cfg(unix)]
pub use std::os::unix::fs::FileExt;

/// Reads and writes at a position.
#[cfg(windows)]
pub trait FileExt {
    /// Reads some bytes at `offset`.
    ///
    /// # Errors
    /// What the operating system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of `bytes` at `offset`.
    ///
    /// # Errors
    /// What the operating system says.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    /// What the operating system says; [`io::ErrorKind::UnexpectedEof`] where there are fewer.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// What the operating system says; any part of the bytes may have been written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.write_at(&bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(windows)]
impl FileExt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_write(self, bytes, offset)
    }
}

/// What tells a file, or a directory, from all others that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// The file system that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What the operating system says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which file it is.
    pub id: FileId,
    /// Bytes.
    pub len: u64,
}

/// The open file, whatever its name leads to by now.
///
/// # Errors
/// What the operating system says.
#[cfg(unix)]
pub fn facts_of(file: &File) -> io::Result<Facts> {
    file.metadata().map(|meta| facts(&meta))
}

/// The file, or the directory, that `path` leads to.
///
/// # Errors
/// What the operating system says.
#[cfg(unix)]
pub fn facts_at(path: &Path) -> io::Result<Facts> {
    path.metadata().map(|meta| facts(&meta))
}

#[cfg(unix)]
fn facts(meta: &std::fs::Metadata) -> Facts {
    use std::os::unix::fs::MetadataExt;
    Facts { id: FileId { device: meta.dev(), inode: meta.ino() }, len: meta.len() }
}

/// The open file, whatever its name leads to by now.
///
/// # Errors
/// What the operating system says.
#[cfg(windows)]
pub fn facts_of(file: &File) -> io::Result<Facts> {
    winapi_util::file::information(file).map(|information| facts(&information))
}

/// The file, or the directory, that `path` leads to.
///
/// # Errors
/// What the operating system says.
#[cfg(windows)]
pub fn facts_at(path: &Path) -> io::Result<Facts> {
    let handle = winapi_util::Handle::from_path_any(path)?;
    winapi_util::file::information(&handle).map(|information| facts(&information))
}

#[cfg(windows)]
fn facts(information: &winapi_util::file::Information) -> Facts {
    let id = FileId { device: information.volume_serial_number(), inode: information.file_index() };
    Facts { id, len: information.file_size() }
}

/// Opens a file for reading; its access time stays as it is, where the system has a way to ask for that and this user may.
///
/// # Errors
/// What the operating system says.
pub fn open_unseen(path: &Path) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        match File::options().read(true).custom_flags(OFlags::NOATIME.bits() as i32).open(path) {
            // only a file's owner may leave it alone
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            other => return other,
        }
    }
    File::open(path)
}
