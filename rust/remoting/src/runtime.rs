//! Threads for network I/O. All servers of a process share up to four threads, all clients share one.
use crate::error::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

// More threads would only pass the same work around.
const MAX_THREADS: usize = 4;

/// A runtime, and the id of the process that owns its threads.
type Owned = Mutex<Option<(u32, Arc<Runtime>)>>;

static SERVERS: Owned = Mutex::new(None);
static CLIENTS: Owned = Mutex::new(None);

/// Returns the runtime that all servers of the process share. Starts it at the first call. A forked process starts
/// its own runtime, because the threads of its parent do not exist there.
pub fn shared() -> Result<Arc<Runtime>> {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS));
    of_process(&SERVERS, cores, "rmqfast-io")
}

/// Returns the runtime that all clients of the process share. It has one thread, because two threads would wake each
/// other for each request and answer.
pub fn of_clients() -> Result<Arc<Runtime>> {
    of_process(&CLIENTS, || 1, "rmqfast-client")
}

fn of_process(owned: &Owned, threads: impl FnOnce() -> usize, name: &str) -> Result<Arc<Runtime>> {
    let mut owned = owned.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if let Some((_, runtime)) = owned.as_ref().filter(|(owner, _)| *owner == pid) {
        return Ok(runtime.clone());
    }
    // multi_thread even for one thread: a current_thread runtime runs only while somebody blocks on it
    let built = Builder::new_multi_thread().worker_threads(threads()).thread_name(name).enable_all().build();
    let runtime = Arc::new(built.map_err(|e| Error::io("starting the threads of the network", e))?);
    if let Some((_, parents)) = owned.replace((pid, runtime.clone())) {
        // dropping it would wait for threads that do not exist in this fork
        std::mem::forget(parents);
    }
    Ok(runtime)
}

/// Runs `work`, which may block, on a thread of the runtime. Returns false if the runtime cannot be started.
pub fn spawn_blocking(work: impl FnOnce() + Send + 'static) -> bool {
    shared().map(|runtime| runtime.spawn_blocking(work)).is_ok()
}

/// Runs `work`, which must be short, after a delay. Returns false if the runtime cannot be started.
pub fn spawn_after(delay: std::time::Duration, work: impl FnOnce() + Send + 'static) -> bool {
    let later = async move {
        tokio::time::sleep(delay).await;
        work();
    };
    shared().map(|runtime| runtime.spawn(later)).is_ok()
}
