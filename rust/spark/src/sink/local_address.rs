//! Finds the local IP address, for message ids and client ids.
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// Returns the local address from which a name server is reached, or 127.0.0.1.
pub fn local_address(name_servers: &[String]) -> IpAddr {
    let address = name_servers.iter().find_map(|server| {
        // connecting a UDP socket sends no packet; the system only chooses an interface
        let bound = UdpSocket::bind("0.0.0.0:0").or_else(|_| UdpSocket::bind("[::]:0")).ok()?;
        bound.connect(server).ok()?;
        Some(bound.local_addr().ok()?.ip())
    });
    address.unwrap_or(Ipv4Addr::LOCALHOST.into())
}
