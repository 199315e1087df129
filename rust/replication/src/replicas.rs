//! The positions that a master's replicas have reported. Sends wait for them with `SYNC_MASTER`.
//!
//! Source: `HAService.isSlaveOK`, `HAService.notifyTransferSome`, `HAService.GroupTransferService`,
//! `CommitLog.submitReplicaRequest`, `MessageStoreConfig`.
use rmqfast_remoting::ServerTls;
use std::net::IpAddr;
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

impl Replicas {
    /// Stores the report of a connection. A replica that reports `acked` has all bytes before this position. `None`
    /// means that the connection is not a replica.
    pub fn on_report(&self, connection: u64, acked: Option<u64>) {
        let mut table = self.table();
        table.acked.retain(|(of, _)| *of != connection);
        table.acked.extend(acked.map(|acked| (connection, acked)));
        self.moved.notify_all();
    }

    pub fn gone(&self, connection: u64) {
        self.on_report(connection, None);
    }

    pub fn has(&self, connection: u64) -> bool {
        self.table().acked.iter().any(|(of, _)| *of == connection)
    }

    /// Returns whether any replica is less than `most_behind` bytes behind `position`. If not, a send does not wait.
    pub fn is_near(&self, position: u64, most_behind: u64) -> bool {
        // strictly less than `most_behind`, as in `isSlaveOK`
        most_behind > 0 && self.table().has(position.saturating_sub(most_behind - 1))
    }

    /// Waits up to `timeout` until any replica has everything before `position`. Returns false if none had it in time.
    pub fn wait(&self, position: u64, timeout: Duration) -> bool {
        let (mut table, deadline) = (self.table(), Instant::now() + timeout);
        loop {
            if table.has(position) {
                return true;
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() || table.is_closed {
                return false;
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

#[derive(Clone, Debug)]
pub struct HaOptions {
    pub peers: Peers,
    /// TLS of the port. With TLS, plain connections are refused, also those of RocketMQ's slaves, which do not
    /// support TLS.
    pub tls: Option<ServerTls>,
    pub max_frame: usize,
    /// Time without a frame after which the master sends a keep-alive.
    pub heartbeat: Duration,
    /// Time after which a connection is closed if no report arrives or a write does not progress.
    pub housekeeping: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peers {
    Machine,
    /// Peers with these addresses, see [`of_addresses`](Self::of_addresses).
    Listed(Vec<IpAddr>),
}

impl Peers {
    pub fn of_addresses(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        Self::Listed(addresses.into_iter().map(|address| address.to_canonical()).collect())
    }

    /// Returns whether a peer with the address `peer` may connect to the local address `own`.
    pub fn has(&self, peer: IpAddr, own: IpAddr) -> bool {
        // an IPv4 peer of an IPv6 listener has a mapped address such as `::ffff:127.0.0.1`
        let peer = peer.to_canonical();
        match self {
            // a connection of this machine to its own address has the same address at both ends
            Self::Machine => peer.is_loopback() || peer == own.to_canonical(),
            Self::Listed(listed) => listed.contains(&peer),
        }
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
        assert!(replicas.wait(30, Duration::ZERO));
        replicas.gone(2);
        assert!(!replicas.wait(30, Duration::ZERO));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| replicas.wait(30, FAR));
            replicas.on_report(1, Some(29));
            replicas.on_report(1, Some(30));
            assert!(waiting.join().expect("no panic"));
        });
    }

    #[test]
    fn nobody_waits_behind_the_end() {
        let replicas = Replicas::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| replicas.wait(1, FAR));
            replicas.close();
            assert!(!waiting.join().expect("no panic"));
        });
        replicas.on_report(1, Some(1));
        assert!(replicas.wait(1, FAR));
    }

    #[test]
    fn who_is_on_this_machine_comes_from_the_address_that_it_connects_to() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (peer, own, expected) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("::1", "::1", true),
            ("::ffff:127.0.0.5", "::ffff:127.0.0.1", true),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("10.0.0.2", "10.0.0.1", false),
            ("fe80::2", "fe80::1", false),
        ] {
            assert_eq!(Peers::Machine.has(ip(peer), ip(own)), expected, "{peer} {own}");
        }
        let listed = Peers::of_addresses([ip("::ffff:10.0.0.2")]);
        assert!(listed.has(ip("10.0.0.2"), ip("10.0.0.1")));
        assert!(!listed.has(ip("127.0.0.1"), ip("127.0.0.1")), "a list is all");
    }
}
