//! The two ids of a message. Both are written as upper-case hexadecimal digits.
//!
//! The offset message id contains the record's place. It has 16 bytes with an IPv4 store host, and 28 with an IPv6 store host:
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | 4 or 16 bytes | address of the store host |
//! | 4, 16 | i32 | its port |
//! | 8, 20 | i64 | physical offset |
//!
//! The unique id, which a Java producer creates and stores as property `UNIQ_KEY`. It has the same two lengths:
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | 4 or 16 bytes | address of the producer |
//! | 4, 16 | u16 | low bits of its process id |
//! | 6, 18 | i32 | hash of its class loader |
//! | 10, 22 | u32 | milliseconds since its month began, in its time zone |
//! | 14, 26 | u16 | low bits of a counter |
//!
//! Neither id has a checksum: a changed digit is another id. Like Java the parser also accepts lower-case digits.
//!
//! Source: `MessageDecoder.createMessageId`, `decodeMessageId`; `MessageClientIDSetter`.
use super::cursor::{i16_at, i32_at, i64_at};
use super::host::Host;
use std::fmt;
use std::net::IpAddr;

/// Bytes behind the address in a unique id.
const TAIL: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetMessageId {
    /// Address of the broker that stored the message.
    pub host: Host,
    pub physical_offset: i64,
}

impl OffsetMessageId {
    /// Parses 32 or 56 digits.
    pub fn parse(text: &str) -> Option<Self> {
        let (bytes, len) = unhex(text)?;
        let (host, offset) = bytes[..len].split_at_checked(len - 8)?;
        Some(Self { host: Host::decode(host)?, physical_offset: i64_at(offset, 0)? })
    }

    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let port = self.host.port.cast_unsigned();
        match self.host.ip {
            // Address and port together are 8 bytes, which one call formats.
            IpAddr::V4(ip) => write_hex_u64(u64::from(ip.to_bits()) << 32 | u64::from(port), out),
            IpAddr::V6(ip) => {
                write_hex_u128(ip.to_bits(), out);
                write_hex_u32(port, out);
            }
        }
        write_hex_u64(self.physical_offset.cast_unsigned(), out);
    }
}

impl fmt::Display for OffsetMessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_ip(self.host.ip, f)?;
        write!(f, "{:08X}{:016X}", self.host.port, self.physical_offset)
    }
}

/// The parts of the unique id that a Java producer creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniqKey {
    pub ip: IpAddr,
    /// Low 16 bits of the producer's process id.
    pub pid: u16,
    /// Hash of the class loader. Distinguishes producers in one process.
    pub class_loader_hash: i32,
    /// Milliseconds since the month began, in the producer's time zone. Unsigned, since it exceeds 2^31 after 24.8 days.
    pub time_diff_ms: u32,
    /// Low 16 bits of a counter of all messages of the process.
    pub counter: u16,
}

impl UniqKey {
    /// Parses 32 or 56 digits. Usually returns `None` for an id that an application chose.
    pub fn parse(text: &str) -> Option<Self> {
        let (bytes, len) = unhex(text)?;
        let (ip, tail) = bytes[..len].split_at_checked(len - TAIL)?;
        Some(Self {
            ip: if ip.len() == 4 { (*ip.first_chunk::<4>()?).into() } else { (*ip.first_chunk::<16>()?).into() },
            pid: i16_at(tail, 0)?.cast_unsigned(),
            class_loader_hash: i32_at(tail, 2)?,
            time_diff_ms: i32_at(tail, 6)?.cast_unsigned(),
            counter: i16_at(tail, 10)?.cast_unsigned(),
        })
    }

    /// Formats the 32 or 56 digits, several at a time, since a producer does this for each message.
    pub fn text(&self) -> String {
        let mut digits = Vec::with_capacity(32);
        self.write(&mut digits);
        String::from_utf8(digits).unwrap_or_default()
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        match self.ip {
            IpAddr::V4(ip) => write_hex_u32(ip.to_bits(), out),
            IpAddr::V6(ip) => write_hex_u128(ip.to_bits(), out),
        }
        let hash = self.class_loader_hash.cast_unsigned();
        // Join the parts to words, since a word is formatted faster than single bytes.
        write_hex_u64(u64::from(self.pid) << 48 | u64::from(hash) << 16 | u64::from(self.time_diff_ms >> 16), out);
        write_hex_u32(self.time_diff_ms << 16 | u32::from(self.counter), out);
    }
}

impl fmt::Display for UniqKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Appends `value` as 16 upper-case hexadecimal digits.
#[inline]
pub fn write_hex_u64(value: u64, out: &mut Vec<u8>) {
    let (high, low) = (hex_digits((value >> 32) as u32), hex_digits(value as u32));
    out.extend_from_slice((u128::from(high) << 64 | u128::from(low)).to_be_bytes().as_slice());
}

/// Appends a value as 8 upper-case hexadecimal digits.
#[inline]
pub fn write_hex_u32(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&hex_digits(value).to_be_bytes());
}

fn write_hex_u128(value: u128, out: &mut Vec<u8>) {
    write_hex_u64((value >> 64) as u64, out);
    write_hex_u64(value as u64, out);
}

/// Returns the 8 digits of `value` as ASCII bytes, the first digit in the highest byte. Works without branches or a table.
#[inline]
fn hex_digits(value: u32) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Spread the nibbles, one into each byte: halve the groups and move the upper halves up.
    let mut word = u64::from(value);
    word = (word | word << 16) & 0x0000_FFFF_0000_FFFF;
    word = (word | word << 8) & 0x00FF_00FF_00FF_00FF;
    word = (word | word << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    // Is 1 in each byte above 9: adding 6 carries into the upper nibble, but never out of the byte.
    let letters = (word + 6 * ONES) >> 4 & ONES;
    // Adds '0' to each digit, and 7 more to each digit above 9, which gives 'A' to 'F'.
    word + u64::from(b'0') * ONES + letters * u64::from(b'A' - b'0' - 10)
}

/// Parses 32 or 56 hexadecimal digits. Returns the bytes and their number, or `None` for any other text.
fn unhex(text: &str) -> Option<([u8; 28], usize)> {
    let (pairs, odd) = text.as_bytes().as_chunks();
    // 16 bytes with an IPv4 address, 28 with an IPv6 address.
    if !odd.is_empty() || !matches!(pairs.len(), 16 | 28) {
        return None;
    }
    let digit = |c: u8| char::from(c).to_digit(16);
    let mut bytes = [0; 28];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some((bytes, pairs.len()))
}

fn write_ip(ip: IpAddr, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match ip {
        IpAddr::V4(ip) => write!(f, "{:08X}", ip.to_bits()),
        IpAddr::V6(ip) => write!(f, "{:032X}", ip.to_bits()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("digits")
    }

    fn host(text: &str) -> Host {
        Host::from(text.parse::<std::net::SocketAddr>().expect("an address"))
    }

    #[test]
    fn an_offset_message_id_of_a_real_broker_decodes_and_encodes() {
        let text = "0A00000100002A9F0000000000000081";
        let id = OffsetMessageId { host: host("10.0.0.1:10911"), physical_offset: 129 };
        assert_eq!(OffsetMessageId::parse(text), Some(id));
        assert_eq!((written(|out| id.write(out)), id.to_string()), (text.to_owned(), text.to_owned()));
    }

    #[test]
    fn a_uniq_key_of_a_real_client_decodes_and_encodes() {
        let text = "FD0000000000000000000000000000026A635FFD2B2767B6EA920000";
        let key = UniqKey {
            ip: "fd00::2".parse().expect("an address"),
            pid: 0x6A63,
            class_loader_hash: 0x5FFD_2B27,
            time_diff_ms: 0x67B6_EA92,
            counter: 0,
        };
        assert_eq!(UniqKey::parse(text), Some(key));
        assert_eq!((written(|out| key.write(out)), key.to_string()), (text.to_owned(), text.to_owned()));
    }

    #[test]
    fn both_ids_round_trip_in_both_families_at_the_edges_of_their_fields() {
        for address in ["255.255.255.255:65535", "[ffff::ffff]:65535", "0.0.0.0:0"] {
            for physical_offset in [0, i64::MAX, i64::MIN, -1] {
                let mut id = OffsetMessageId { host: host(address), physical_offset };
                id.host.port = !id.host.port;
                assert_eq!(written(|out| id.write(out)), id.to_string());
                assert_eq!(OffsetMessageId::parse(&id.to_string()), Some(id));
            }
            let ip = host(address).ip;
            for (class_loader_hash, time_diff_ms) in [(i32::MIN, u32::MAX), (-1, 1 << 31), (1, 0x1234_5678)] {
                let key = UniqKey { ip, pid: u16::MAX, class_loader_hash, time_diff_ms, counter: 0xFFFE };
                assert_eq!(written(|out| key.write(out)), key.to_string());
                assert_eq!(UniqKey::parse(&key.to_string()), Some(key));
            }
        }
    }

    #[test]
    fn truncated_ids_and_other_digits_are_none() {
        let text = "0A00000100002A9F0000000000000081";
        for bad in ["", &text[1..], &text[2..], &text.replace('F', "G"), &text.replace('F', "é")] {
            assert_eq!((OffsetMessageId::parse(bad), UniqKey::parse(bad)), (None, None), "{bad}");
        }
        assert_eq!(OffsetMessageId::parse(&text.to_lowercase()), OffsetMessageId::parse(text));
    }

    #[test]
    fn a_flipped_digit_is_another_id() {
        let id = OffsetMessageId::parse("0A00000100002A9F0000000000000080").expect("an id");
        assert_eq!((id.host, id.physical_offset), (host("10.0.0.1:10911"), 128));
    }

    #[test]
    fn digits_written_at_once_equal_those_of_the_formatter() {
        let mut value = 0x0123_4567_89AB_CDEF_u64;
        for _ in 0..10_000 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7) ^ 1;
            assert_eq!(written(|out| write_hex_u64(value, out)), format!("{value:016X}"));
            assert_eq!(written(|out| write_hex_u32(value as u32, out)), format!("{:08X}", value as u32));
        }
        for value in [0, u64::MAX, 0x9A9A_9A9A_9A9A_9A9A, 0x0F0F_0F0F_0F0F_0F0F] {
            assert_eq!(written(|out| write_hex_u64(value, out)), format!("{value:016X}"));
        }
    }
}
