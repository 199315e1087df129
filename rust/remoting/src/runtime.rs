//! The threads of the network: some for all servers of a process, one for its clients.
use crate::error::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

// More would only hand the same work around.
const MAX_THREADS: usize = 4;

/// A runtime, and the process whose threads it has.
type Owned = Mutex<Option<(u32, Arc<Runtime>)>>;

static SERVERS: Owned = Mutex::new(None);
static CLIENTS: Owned = Mutex::new(None);

/// Returns the runtime of the process's servers; it starts with the first call. A fork has none of its parent's
/// threads, and so starts its own.
///
/// # Errors
/// [`Error::Io`] where no thread can be started.
pub fn shared() -> Result<Arc<Runtime>> {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS));
    of_process(&SERVERS, cores, "rmqfast-io")
}

/// Returns the runtime of the process's clients: one thread, as two would wake each other for each answer and request.
///
/// # Errors
/// As [`shared`].
pub fn of_clients() -> Result<Arc<Runtime>> {
    of_process(&CLIENTS, || 1, "rmqfast-client")
}

fn of_process(owned: &Owned, threads: impl FnOnce() -> usize, name: &str) -> Result<Arc<Runtime>> {
    let mut owned = owned.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if let Some((_, runtime)) = owned.as_ref().filter(|(owner, _)| *owner == pid) {
        return Ok(runtime.clone());
    }
    // also for one thread: nobody would drive a runtime that has none of its own
    let built = Builder::new_multi_thread().worker_threads(threads()).thread_name(name).enable_all().build();
    let runtime = Arc::new(built.map_err(|e| Error::io("starting the threads of the network", e))?);
    if let Some((_, parents)) = owned.replace((pid, runtime.clone())) {
        // its threads are not here to be waited for
        std::mem::forget(parents);
    }
    Ok(runtime)
}

/// Runs what may take long on a thread of the process's runtime. Returns false where there is none.
pub fn spawn_blocking(work: impl FnOnce() + Send + 'static) -> bool {
    shared().map(|runtime| runtime.spawn_blocking(work)).is_ok()
}

/// Runs what does not take long after some time. Returns false where there is no runtime.
pub fn spawn_after(delay: std::time::Duration, work: impl FnOnce() + Send + 'static) -> bool {
    let later = async move {
        tokio::time::sleep(delay).await;
        work();
    };
    shared().map(|runtime| runtime.spawn(later)).is_ok()
}
