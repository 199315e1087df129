//! Options of a master's HA port.
//!
//! Source: `MessageStoreConfig`.
use rmqfast_remoting::ServerTls;
use std::net::IpAddr;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct HaOptions {
    /// Tells which peers may connect.
    pub peers: Peers,
    /// TLS of the port. With TLS, plain connections are refused, also those of RocketMQ's slaves, which do not
    /// support TLS.
    pub tls: Option<ServerTls>,
    /// Maximum bytes of the log in a frame.
    pub max_frame: usize,
    /// Time without a frame after which the master sends a keep-alive.
    pub heartbeat: Duration,
    /// Time after which a connection is closed if no report arrives or a write does not progress.
    pub housekeeping: Duration,
}

/// Tells which peers may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peers {
    /// All processes on this machine, and no others.
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
