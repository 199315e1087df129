//! Returns the id of this process. It is cached, which saves a system call per request.
use std::sync::atomic::{AtomicU32, Ordering};

static ID: AtomicU32 = AtomicU32::new(0);

pub fn id() -> u32 {
    // no process has the id 0, so 0 means "not asked yet"
    match ID.load(Ordering::Relaxed) {
        0 => {
            let id = std::process::id();
            ID.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// Clears the cached id. Called in each forked process, which would otherwise use the id of its parent.
pub fn forget() {
    ID.store(0, Ordering::Relaxed);
}
