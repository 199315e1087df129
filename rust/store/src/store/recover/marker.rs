//! What says that a recovery of all of the store began and did not end.
use crate::Result;
use crate::file::disk::{self, Call};
use crate::file::{permission, place};
use std::path::Path;

/// Stands in the store's directory while queues may be shorter than a checkpoint tells.
const BEGUN: &str = "recovery.begun";

/// Whether a recovery began and did not end.
pub fn is_begun(root: &Path) -> Result<bool> {
    place::exists(&root.join(BEGUN))
}

/// Notes that the next start is to recover all of the store.
pub fn begin(root: &Path) -> Result<()> {
    let path = root.join(BEGUN);
    disk::call(Call::Create, &path, || permission::create(&path))?;
    disk::sync_directory(root)
}

/// Notes that it has ended.
pub fn remove(root: &Path) -> Result<()> {
    if is_begun(root)? {
        disk::remove_file(&root.join(BEGUN))?;
        disk::sync_directory(root)?;
    }
    Ok(())
}
