//! How a master serves its log, and to whom.
//!
//! Source: `MessageStoreConfig`.
use std::net::IpAddr;
use std::time::Duration;

/// How the log is served.
#[derive(Clone, Debug)]
pub struct HaOptions {
    /// Who may connect.
    pub peers: Peers,
    /// Bytes of the log in a frame, at most.
    pub max_frame: usize,
    /// After so long without a frame one is sent that has none.
    pub heartbeat: Duration,
    /// After so long without a report, or without room for a byte, a connection is closed.
    pub housekeeping: Duration,
}

/// Who may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Who is on this machine.
    Loopback,
    /// Who has one of these addresses.
    Listed(Vec<IpAddr>),
}

impl Peers {
    /// Whether one of them has this address.
    pub fn has(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        match self {
            Self::Loopback => ip.is_loopback(),
            Self::Listed(listed) => listed.contains(&ip),
        }
    }
}
