//! The local address, for ids of messages and of clients.
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// The address by which this machine reaches a name server.
pub fn local_address(name_servers: &[String]) -> IpAddr {
    let address = name_servers.iter().find_map(|server| {
        // no packet is sent: the system only chooses an interface
        let bound = UdpSocket::bind("0.0.0.0:0").or_else(|_| UdpSocket::bind("[::]:0")).ok()?;
        bound.connect(server).ok()?;
        Some(bound.local_addr().ok()?.ip())
    });
    address.unwrap_or(Ipv4Addr::LOCALHOST.into())
}
