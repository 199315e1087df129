//! Which process this is, without asking the operating system for each request.
use std::sync::atomic::{AtomicU32, Ordering};

static ID: AtomicU32 = AtomicU32::new(0);

/// Returns the number of this process.
pub fn id() -> u32 {
    match ID.load(Ordering::Relaxed) {
        0 => {
            let id = std::process::id();
            ID.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// To be called in each fork, which otherwise takes itself for its parent.
pub fn forget() {
    ID.store(0, Ordering::Relaxed);
}
