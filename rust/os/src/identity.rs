//! Identity of an open file, or of the file at a path.
use std::fs::File;
use std::io;
use std::path::Path;

/// Identity of a file or directory. It is the same for all names of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub id: FileId,
    pub len: u64,
}

/// Returns the metadata of an open file, even if its name now belongs to another file.
pub fn facts_of(file: &File) -> io::Result<Facts> {
    #[cfg(unix)]
    return file.metadata().map(|meta| facts(&meta));
    #[cfg(windows)]
    return winapi_util::file::information(file).map(|information| facts(&information));
}

/// Returns the metadata of the file or directory at `path`.
pub fn facts_at(path: &Path) -> io::Result<Facts> {
    #[cfg(unix)]
    return path.metadata().map(|meta| facts(&meta));
    #[cfg(windows)]
    {
        let handle = winapi_util::Handle::from_path_any(path)?;
        winapi_util::file::information(&handle).map(|information| facts(&information))
    }
}

#[cfg(unix)]
fn facts(meta: &std::fs::Metadata) -> Facts {
    use std::os::unix::fs::MetadataExt;
    Facts { id: FileId { device: meta.dev(), inode: meta.ino() }, len: meta.len() }
}

#[cfg(windows)]
fn facts(information: &winapi_util::file::Information) -> Facts {
    let id = FileId { device: information.volume_serial_number(), inode: information.file_index() };
    Facts { id, len: information.file_size() }
}
