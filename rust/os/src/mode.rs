//! Permissions of new files: the mode on Unix. On Windows they are inherited from the directory.
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens the file at `path` with `options`. A new file gets `mode` without the bits of the umask.
pub fn open(options: &mut OpenOptions, path: &Path, mode: u32) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, mode);
    #[cfg(windows)]
    let _ = mode;
    options.open(path)
}

/// Sets the mode of an open file, regardless of the umask.
pub fn set(file: &File, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    return file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(windows)]
    {
        let _ = (file, mode);
        Ok(())
    }
}

/// Creates a directory and its missing parents. They get `mode` without the bits of the umask.
pub fn create_directories(path: &Path, mode: u32) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    #[cfg(windows)]
    let _ = mode;
    builder.create(path)
}
