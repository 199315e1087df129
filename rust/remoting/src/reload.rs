//! Watches the PEM files of a server, so that new certificates apply without a restart.
//!
//! Source: `FileWatchService`, as `BrokerController` and `NamesrvController` use it.
use crate::accept::Acceptor;
use crate::handler::Handler;
use crate::key_material::KeyMaterial;
use std::sync::Weak;
use std::time::Duration;

/// Contents of the PEM files at the last checks.
struct Watch {
    loaded: KeyMaterial,
    /// Contents at the last check, if they were different from `loaded`.
    seen: Option<KeyMaterial>,
}

/// Loads changed certificate files, which are checked every `interval` until the server is dropped. If new files are
/// unusable, the old certificates stay in use and the handler gets a warning.
pub async fn run(acceptor: Weak<Acceptor>, handler: Weak<dyn Handler>, loaded: KeyMaterial, interval: Duration) {
    let mut watch = Watch { loaded, seen: None };
    loop {
        tokio::time::sleep(interval).await;
        let Some(tls) = acceptor.upgrade().map(|acceptor| acceptor.tls.clone()) else { return };
        // files may be on a slow disk, and this thread also serves connections
        let Ok(material) = tokio::task::spawn_blocking(move || tls.material()).await else { return };
        let (Some(acceptor), Some(handler)) = (acceptor.upgrade(), handler.upgrade()) else { return };
        if let Some(settled) = watch.look(material)
            && let Err(error) = acceptor.replace(&settled)
        {
            handler.on_warning(&error);
        }
    }
}

impl Watch {
    /// Returns the contents to load. A change is loaded after two checks in a row have seen it, because certificate
    /// and key are replaced one after the other.
    fn look(&mut self, material: KeyMaterial) -> Option<KeyMaterial> {
        if material == self.loaded {
            self.seen = None;
            return None;
        }
        if self.seen.as_ref() != Some(&material) {
            self.seen = Some(material);
            return None;
        }
        self.loaded = material.clone();
        self.seen = None;
        Some(material)
    }
}
