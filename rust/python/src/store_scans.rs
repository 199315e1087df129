//! Scans of the stores of one or several brokers, one after the other.
use crate::decode::{PyBadBody, from_bad_body};
use crate::row::{PyDamage, from_damage};
use arrow_array::RecordBatch;
use rmqfast_store::scan::decode::bad_bodies::BadBodies;
use rmqfast_store::store::commit_log::DamageLog;
use rmqfast_store::{Error, Result, scan};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a read with its error, as Ctrl-C does.
pub type Interrupt = dyn FnMut() -> Result<()> + Send;

/// The state of a store that all its scans share.
#[derive(Clone)]
pub struct StoreGuard {
    pub root: PathBuf,
    /// Whether the store was closed.
    pub is_closed: Arc<AtomicBool>,
}

impl StoreGuard {
    /// Checks that the store is open.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn check(&self) -> Result<()> {
        let is_closed = self.is_closed.load(Ordering::Acquire);
        if is_closed { Err(Error::Closed { path: self.root.clone() }) } else { Ok(()) }
    }
}

/// A scan of one store.
pub struct StoreScan {
    pub scan: scan::Scan,
    pub guard: StoreGuard,
    pub broker_name: Option<String>,
}

impl StoreScan {
    fn next_batch(&mut self, interrupt: &mut Interrupt, fails_on_damage: bool) -> Result<Option<RecordBatch>> {
        self.guard.check()?;
        let batch = self.scan.next_batch(interrupt).map_err(|error| self.name_broker(error))?;
        // checked first, so that no batch behind lost messages is returned
        match self.scan.damage_error().filter(|_| fails_on_damage) {
            Some(error) => Err(self.name_broker(error)),
            None => Ok(batch),
        }
    }

    fn name_broker(&self, error: Error) -> Error {
        let Some(name) = &self.broker_name else { return error };
        let named = |reason| format!("broker {name}: {reason}");
        match error {
            Error::Corrupt { path, offset, reason } => Error::Corrupt { path, offset, reason: named(reason) },
            Error::Body { topic, queue_id, queue_offset, reason } => {
                Error::Body { topic, queue_id, queue_offset, reason: named(reason) }
            }
            error => error,
        }
    }
}

#[derive(Default)]
pub struct StoreScans {
    scans: Vec<StoreScan>,
    /// Index of the scan that is read.
    at: usize,
}

impl StoreScans {
    pub fn new(scans: Vec<StoreScan>) -> Self {
        Self { scans, at: 0 }
    }

    /// Returns the scans of all, to read one after the other.
    pub fn chain(all: impl IntoIterator<Item = Self>) -> Self {
        Self::new(all.into_iter().flat_map(|each| each.scans).collect())
    }

    pub fn next_batch(&mut self, interrupt: &mut Interrupt, fails_on_damage: bool) -> Result<Option<RecordBatch>> {
        while let Some(scan) = self.scans.get_mut(self.at) {
            if let Some(batch) = scan.next_batch(interrupt, fails_on_damage)? {
                return Ok(Some(batch));
            }
            self.at += 1;
        }
        Ok(None)
    }

    /// Returns the damage that was found so far, and the number of further places.
    pub fn damage(&self) -> (Vec<PyDamage>, u64) {
        let (mut places, mut more) = (Vec::new(), 0);
        for StoreScan { scan, broker_name, .. } in &self.scans {
            let damage = scan.damage();
            let room = DamageLog::LIMIT - places.len();
            let named = |place| {
                let (offset, length, reason, file, _) = from_damage(place);
                (offset, length, reason, file, broker_name.clone())
            };
            places.extend(damage.entries().iter().take(room).map(named));
            more += damage.more() + damage.entries().len().saturating_sub(room) as u64;
        }
        (places, more)
    }

    pub fn has_damage(&self) -> bool {
        self.scans.iter().any(|each| each.scan.damage_error().is_some())
    }

    pub fn fails_on_bad_bodies(&self) -> bool {
        self.scans.iter().any(|each| each.scan.fails_on_bad_bodies())
    }

    /// Returns the bodies that could not be decoded so far, and the number of further ones.
    pub fn bad_bodies(&self) -> (Vec<PyBadBody>, u64) {
        let (mut bodies, mut names) = (BadBodies::default(), Vec::new());
        for StoreScan { scan, broker_name, .. } in &self.scans {
            let of_store = scan.bad_bodies();
            names.extend(of_store.entries().iter().map(|_| broker_name.clone()));
            bodies.append(of_store);
        }
        let named = bodies.entries().iter().zip(names).map(|(body, name)| {
            let (topic, queue_id, queue_offset, physical_offset, reason, _) = from_bad_body(body);
            (topic, queue_id, queue_offset, physical_offset, reason, name)
        });
        (named.collect(), bodies.more())
    }
}
