//! A small file that takes the place of another one: whoever looks finds the old one or the new one.
use super::disk::{self, Call};
use super::permission;
use crate::Result;
use std::io::Write;
use std::path::Path;

/// Gives the name `path` to a new file with `text`, once that is on the disk. The name itself is, once its directory is.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io); then the old file is there.
pub fn replace(path: &Path, text: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let done = write_new(&temporary, text).and_then(|()| disk::rename(&temporary, path));
    done.inspect_err(|_| drop(disk::remove_file(&temporary)))
}

/// Writes a file from its first byte, whatever a killed process left there.
fn write_new(path: &Path, text: &[u8]) -> Result<()> {
    let mut file = disk::call(Call::Create, path, || permission::create(path))?;
    disk::call(Call::Write, path, || file.write_all(text))?;
    disk::call(Call::Sync, path, || file.sync_all())
}
