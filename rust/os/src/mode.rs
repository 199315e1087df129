//! Permissions of files that are created: the mode, on Unix. Windows takes them from the directory.
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens the file at `path` with `options`; where they create it, it has `mode` less what the umask takes.
///
/// # Errors
/// What the operating system says.
pub fn open(options: &mut OpenOptions, path: &Path, mode: u32) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, mode);
    #[cfg(windows)]
    let _ = mode;
    options.open(path)
}

/// Gives an open file a mode, whatever the umask is.
///
/// # Errors
/// What the operating system says.
pub fn set(file: &File, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    return file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(windows)]
    {
        let _ = (file, mode);
        Ok(())
    }
}

/// Makes a directory, and those above it that are not there, with `mode` less what the umask takes.
///
/// # Errors
/// What the operating system says.
pub fn create_directories(path: &Path, mode: u32) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    #[cfg(windows)]
    let _ = mode;
    builder.create(path)
}
