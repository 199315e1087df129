//! How far the replicas of a master are, for sends that wait for one (`SYNC_MASTER`).
//!
//! Source: `HAService.isSlaveOK`, `HAService.notifyTransferSome`, `HAService.GroupTransferService`, `CommitLog.submitReplicaRequest`.
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The connections over which slaves get the log.
#[derive(Debug, Default)]
pub struct Replicas {
    table: Mutex<Vec<Replica>>,
    moved: Condvar,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Who it is.
    pub peer: SocketAddr,
    /// What it reported last, of what it was sent. None before, and of a reader that is no replica.
    ///
    /// In RocketMQ the first report counts, too, and so does whoever asks for the log's end without having any of it.
    pub acked: Option<u64>,
}

/// What came of waiting for a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicated {
    /// One has it.
    Yes,
    /// There is none, or none that is near: nobody waited.
    NotAvailable,
    /// None has it in time.
    Late,
}

impl Replicas {
    /// One more, which has reported nothing.
    pub fn connected(&self, peer: SocketAddr) {
        self.table().push(Replica { peer, acked: None });
    }

    /// It reports that it has all before a position; `None` where it is none.
    pub fn reported(&self, peer: SocketAddr, acked: Option<u64>) {
        if let Some(replica) = self.table().iter_mut().find(|replica| replica.peer == peer) {
            replica.acked = acked;
        }
        self.moved.notify_all();
    }

    /// It is gone, and with it what it reported.
    pub fn gone(&self, peer: SocketAddr) {
        self.table().retain(|replica| replica.peer != peer);
    }

    /// All of them.
    pub fn all(&self) -> Vec<Replica> {
        self.table().clone()
    }

    /// Waits until one has all before `position`, or until `deadline`. Nobody waits where none has all but `most_behind` bytes.
    pub fn wait(&self, position: u64, deadline: Instant, most_behind: u64) -> Replicated {
        let mut table = self.table();
        if !has(&table, position.saturating_sub(most_behind.saturating_sub(1))) {
            return Replicated::NotAvailable;
        }
        loop {
            if has(&table, position) {
                return Replicated::Yes;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Replicated::Late;
            }
            table = self.moved.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn table(&self) -> MutexGuard<'_, Vec<Replica>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one has all before `position`.
fn has(table: &[Replica], position: u64) -> bool {
    table.iter().any(|replica| replica.acked.is_some_and(|acked| acked >= position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn peer(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn who_reported_nothing_or_is_far_behind_is_not_waited_for() {
        let replicas = Replicas::default();
        let soon = || Instant::now() + Duration::from_millis(5);
        let wait = |position| replicas.wait(position, soon(), 100);
        assert_eq!(wait(10), Replicated::NotAvailable);
        replicas.connected(peer(1));
        assert_eq!(wait(0), Replicated::NotAvailable);
        replicas.reported(peer(1), Some(50));
        assert_eq!(
            [50, 51, 149, 150].map(wait),
            [Replicated::Yes, Replicated::Late, Replicated::Late, Replicated::NotAvailable]
        );
        replicas.reported(peer(1), None);
        assert_eq!(wait(10), Replicated::NotAvailable);
    }

    #[test]
    fn one_of_several_is_enough_and_none_counts_that_is_gone() {
        let replicas = Replicas::default();
        for (port, acked) in [(1, 10), (2, 30)] {
            replicas.connected(peer(port));
            replicas.reported(peer(port), Some(acked));
        }
        assert_eq!(replicas.wait(30, Instant::now(), 100), Replicated::Yes);
        replicas.gone(peer(2));
        assert_eq!(replicas.wait(30, Instant::now(), 100), Replicated::Late);
        let far = Instant::now() + Duration::from_secs(60);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| replicas.wait(30, far, 100));
            replicas.reported(peer(1), Some(29));
            replicas.reported(peer(1), Some(30));
            assert_eq!(waiting.join().expect("no panic"), Replicated::Yes);
        });
    }
}
