//! Certificates, keys and authorities that change while a server runs.
//!
//! Source: `FileWatchService`, as `BrokerController` and `NamesrvController` use it.
use crate::accept::Acceptor;
use crate::key_material::KeyMaterial;
use crate::server::Shared;
use std::sync::{Arc, Weak};

/// What was seen of the files.
struct Watch {
    loaded: KeyMaterial,
    /// At the last look, where it was something else.
    seen: Option<KeyMaterial>,
}

/// Looks at the files until the server is gone. Those that are of no use change nothing, and the handler is told of them.
pub async fn run(shared: Weak<Shared>, acceptor: Arc<Acceptor>, loaded: KeyMaterial) {
    let mut watch = Watch { loaded, seen: None };
    loop {
        let Some(interval) = shared.upgrade().map(|shared| shared.options.reload_interval) else { return };
        tokio::time::sleep(interval).await;
        let tls = acceptor.tls.clone();
        let Ok(found) = tokio::task::spawn_blocking(move || tls.material()).await else { return };
        let Some(shared) = shared.upgrade() else { return };
        if let Some(settled) = watch.look(found)
            && let Err(error) = acceptor.replace(&settled)
        {
            shared.handler.warned(&error);
        }
    }
}

impl Watch {
    /// What is to be loaded: something else than before that was there twice, since files are exchanged one after the other.
    fn look(&mut self, found: KeyMaterial) -> Option<KeyMaterial> {
        if found == self.loaded {
            self.seen = None;
            return None;
        }
        if self.seen.as_ref() != Some(&found) {
            self.seen = Some(found);
            return None;
        }
        self.loaded = found.clone();
        self.seen = None;
        Some(found)
    }
}
