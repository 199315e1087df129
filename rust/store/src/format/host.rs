//! The address of a host in a record: 4 or 16 bytes of IP address in network order, then the port as `i32`.
//!
//! Source: `MessageExt.socketAddress2ByteBuffer`.
use super::cursor::i32_at;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// An IP address and a port. The port has 32 bits, since a damaged record may hold any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    pub ip: IpAddr,
    /// 0 to 65535 unless the record is damaged.
    pub port: i32,
}

impl Host {
    /// Decodes 8 bytes (IPv4) or 20 bytes (IPv6). `None` for any other length.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let ip = match bytes.len() {
            // 4 or 16 bytes of address, then 4 bytes of port.
            8 => IpAddr::from(*bytes.first_chunk::<4>()?),
            20 => IpAddr::from(*bytes.first_chunk::<16>()?),
            _ => return None,
        };
        Some(Self { ip, port: i32_at(bytes, bytes.len() - 4)? })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        match self.ip {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
        out.extend_from_slice(&self.port.to_be_bytes());
    }

    /// Returns the number of bytes that [`encode`](Self::encode) appends.
    pub fn encoded_len(&self) -> usize {
        if self.ip.is_ipv4() { 8 } else { 20 }
    }
}

impl From<SocketAddr> for Host {
    fn from(address: SocketAddr) -> Self {
        Self { ip: address.ip(), port: i32::from(address.port()) }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip {
            IpAddr::V4(ip) => write!(f, "{ip}:{}", self.port),
            IpAddr::V6(ip) => write!(f, "[{ip}]:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_round_trip() {
        for (text, len) in [("1.2.3.4:5555", 8), ("[fd00::2]:10911", 20)] {
            let host = Host::from(text.parse::<SocketAddr>().expect("an address"));
            let mut bytes = Vec::new();
            host.encode(&mut bytes);
            assert_eq!((bytes.len(), host.encoded_len()), (len, len));
            assert_eq!(Host::decode(&bytes), Some(host));
            assert_eq!(host.to_string(), text);
            assert_eq!(Host::decode(&bytes[1..]), None);
        }
    }
}
