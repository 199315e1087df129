//! Opens files without changing their access time, and reads and writes at a position.
use std::fs::File;
use std::io;
use std::path::Path;

#[cfg(unix)]
pub use std::os::unix::fs::FileExt;

/// Reads and writes a file at a given position.
#[cfg(windows)]
pub trait FileExt {
    /// Reads some bytes at `offset` into `buffer`, and returns their number.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of `bytes` at `offset`, and returns their number.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Fills `buffer` with the bytes at `offset`. Fails with the error of the operating system;
    /// [`io::ErrorKind::UnexpectedEof`] if the file ends earlier.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut at = 0;
        while at < buffer.len() {
            match self.read_at(&mut buffer[at..], offset + at as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => at += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes` at `offset`. Fails with the error of the operating system; any part of the bytes may have been
    /// written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut at = 0;
        while at < bytes.len() {
            match self.write_at(&bytes[at..], offset + at as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => at += written,
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

/// Opens a file for reading without changing its access time, if the system and the user's permissions allow that.
pub fn open_unseen(path: &Path) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        match File::options().read(true).custom_flags(OFlags::NOATIME.bits() as i32).open(path) {
            // only the owner of a file may use NOATIME
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            other => return other,
        }
    }
    File::open(path)
}
