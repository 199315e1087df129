//! Replaces a small file atomically. A reader finds the old file or the new file, never a mixture.
use super::disk::{self, Call};
use super::permission;
use crate::Result;
use std::io::Write;
use std::path::Path;

/// Writes `text` to a temporary file, flushes it and renames it to `path`. The caller must flush the directory to make the rename durable.
/// After an error the old file still exists.
pub fn replace(path: &Path, text: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let result = write_new(&temporary, text).and_then(|()| disk::rename(&temporary, path));
    result.inspect_err(|_| drop(disk::remove_file(&temporary)))
}

/// Writes a whole new file. Overwrites a file that a killed process has left.
fn write_new(path: &Path, text: &[u8]) -> Result<()> {
    let mut file = disk::call(Call::Create, path, || permission::create(path))?;
    disk::call(Call::Write, path, || file.write_all(text))?;
    disk::call(Call::Sync, path, || file.sync_all())
}
