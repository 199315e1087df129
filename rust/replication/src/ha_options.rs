//! Options of a master's HA port.
//!
//! Source: `MessageStoreConfig`.
use rmqfast_remoting::ServerTls;
use std::net::IpAddr;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct HaOptions {
    /// Peers that may connect.
    pub peers: Peers,
    /// TLS, which excludes plain connections. RocketMQ's slaves do not support TLS.
    pub tls: Option<ServerTls>,
    /// Maximum log bytes per frame.
    pub max_frame: usize,
    /// Time without a frame after which a keep-alive is sent.
    pub heartbeat: Duration,
    /// Time without a report, or without progress of a write, after which a connection is closed.
    pub housekeeping: Duration,
}

/// Peers that may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Processes on this machine.
    Machine,
    /// These addresses; see [`of_addresses`](Self::of_addresses).
    Listed(Vec<IpAddr>),
}

impl Peers {
    /// Allows the peers with these addresses.
    pub fn of_addresses(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        Self::Listed(addresses.into_iter().map(|address| address.to_canonical()).collect())
    }

    /// Returns whether a peer with the address `peer` may connect to the local address `own`.
    pub fn has(&self, peer: IpAddr, own: IpAddr) -> bool {
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
