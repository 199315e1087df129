//! The file `recovery.begun`. The file exists while a recovery of the whole store runs, and after an interrupted
//! recovery. While the file exists, queues may be shorter than the checkpoint claims.
use crate::Result;
use crate::file::disk::{self, Call};
use crate::file::{permission, place};
use std::path::Path;

const BEGUN: &str = "recovery.begun";

pub fn is_begun(root: &Path) -> Result<bool> {
    place::exists(&root.join(BEGUN))
}

/// Creates the file, so that the next start recovers the whole store.
pub fn begin(root: &Path) -> Result<()> {
    let path = root.join(BEGUN);
    disk::call(Call::Create, &path, || permission::create(&path))?;
    disk::sync_directory(root)
}

pub fn remove(root: &Path) -> Result<()> {
    if is_begun(root)? {
        disk::remove_file(&root.join(BEGUN))?;
        disk::sync_directory(root)?;
    }
    Ok(())
}
