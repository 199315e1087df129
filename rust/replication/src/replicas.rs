//! The positions that a master's replicas have reported. Sends wait for them with `SYNC_MASTER`.
//!
//! Source: `HAService.isSlaveOK`, `HAService.notifyTransferSome`, `HAService.GroupTransferService`, `CommitLog.submitReplicaRequest`.
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Replicas, each with the number of its connection.
#[derive(Debug, Default)]
pub struct Replicas {
    table: Mutex<Table>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    /// Number of the connection and last reported position of each replica. As in RocketMQ, the first report counts
    /// too, although it is a request, and reports never expire.
    acked: Vec<(u64, u64)>,
    is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaWait {
    Yes,
    /// No replica reported the position in time.
    Late,
}

impl Replicas {
    /// Stores the report of a connection. A replica that reports `acked` has all bytes before this position. `None`
    /// means that the connection is not a replica.
    pub fn on_report(&self, connection: u64, acked: Option<u64>) {
        let mut table = self.table();
        table.acked.retain(|(of, _)| *of != connection);
        table.acked.extend(acked.map(|acked| (connection, acked)));
        self.moved.notify_all();
    }

    /// Removes a connection that has ended.
    pub fn gone(&self, connection: u64) {
        self.on_report(connection, None);
    }

    /// Returns whether a connection belongs to a replica.
    pub fn has(&self, connection: u64) -> bool {
        self.table().acked.iter().any(|(of, _)| *of == connection)
    }

    /// Returns whether any replica is less than `most_behind` bytes behind `position`. If not, a send does not wait.
    pub fn is_near(&self, position: u64, most_behind: u64) -> bool {
        // strictly less than `most_behind`, as in `isSlaveOK`
        most_behind > 0 && self.table().has(position.saturating_sub(most_behind - 1))
    }

    /// Waits up to `timeout` until any replica has all bytes before `position`.
    pub fn wait(&self, position: u64, timeout: Duration) -> ReplicaWait {
        let (mut table, deadline) = (self.table(), Instant::now() + timeout);
        loop {
            if table.has(position) {
                return ReplicaWait::Yes;
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() || table.is_closed {
                return ReplicaWait::Late;
            }
            table = self.moved.wait_timeout(table, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends all waits, and makes later waits return at once.
    pub fn close(&self) {
        self.table().is_closed = true;
        self.moved.notify_all();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns whether any replica has all bytes before `position`.
    fn has(&self, position: u64) -> bool {
        self.acked.iter().any(|(_, acked)| *acked >= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Duration = Duration::from_secs(60);

    #[test]
    fn who_reported_nothing_or_is_far_behind_is_not_waited_for() {
        let replicas = Replicas::default();
        assert!(!replicas.is_near(0, 100));
        replicas.on_report(1, Some(50));
        assert_eq!([0, 50, 149, 150].map(|position| replicas.is_near(position, 100)), [true, true, true, false]);
        assert!(!replicas.is_near(0, 0));
        assert_eq!((replicas.has(1), replicas.has(2)), (true, false));
        replicas.on_report(1, None);
        assert!(!replicas.is_near(0, 100) && !replicas.has(1));
    }

    #[test]
    fn one_of_several_is_enough_and_none_counts_that_is_gone() {
        let replicas = Replicas::default();
        replicas.on_report(1, Some(10));
        replicas.on_report(2, Some(30));
        assert_eq!(replicas.wait(30, Duration::ZERO), ReplicaWait::Yes);
        replicas.gone(2);
        assert_eq!(replicas.wait(30, Duration::ZERO), ReplicaWait::Late);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| replicas.wait(30, FAR));
            replicas.on_report(1, Some(29));
            replicas.on_report(1, Some(30));
            assert_eq!(waiting.join().expect("no panic"), ReplicaWait::Yes);
        });
    }

    #[test]
    fn nobody_waits_behind_the_end() {
        let replicas = Replicas::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| replicas.wait(1, FAR));
            replicas.close();
            assert_eq!(waiting.join().expect("no panic"), ReplicaWait::Late);
        });
        replicas.on_report(1, Some(1));
        assert_eq!(replicas.wait(1, FAR), ReplicaWait::Yes);
    }
}
