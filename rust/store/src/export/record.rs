//! Copies a record to another place of a log.
use crate::format::message::Message;
use crate::format::properties;

/// Position of the field PHYSICALOFFSET. See the table in [`crate::format::message`].
const PHYSICAL_OFFSET_AT: usize = 28;

/// Appends the record with a new physical offset. The property CRC covers the offset, so a correct CRC is computed again.
#[inline]
pub fn append_at(message: &Message<'_>, physical_offset: i64, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(message.record());
    let record = &mut out[start..];
    record[PHYSICAL_OFFSET_AT..PHYSICAL_OFFSET_AT + 8].copy_from_slice(&physical_offset.to_be_bytes());
    // A wrong CRC stays wrong, so that damage is still detected in the copy.
    if properties::check_crc(message.record()) == Some(true) {
        properties::seal_crc(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::host::Host;
    use crate::format::message::NewMessage;

    fn record(properties: &[u8]) -> Vec<u8> {
        let host = Host { ip: std::net::Ipv6Addr::LOCALHOST.into(), port: 1 };
        let message = NewMessage {
            queue_id: 1,
            flag: 2,
            queue_offset: 3,
            physical_offset: 4,
            sys_flag: 8,
            born_timestamp: 5,
            born_host: host,
            store_timestamp: 6,
            store_host: host,
            reconsume_times: 7,
            prepared_transaction_offset: 8,
            body: b"body",
            topic: &"t".repeat(200),
            properties,
        };
        let mut out = Vec::new();
        message.encode(&mut out).expect("encoded");
        out
    }

    #[test]
    fn only_the_physical_offset_and_its_crc_change() {
        let mut reserved = b"a\x01b\x02".to_vec();
        properties::reserve_crc(&mut reserved);
        for properties in [b"a\x01b".to_vec(), reserved] {
            let there = record(&properties);
            let mut moved = b"before".to_vec();
            append_at(&Message::decode(&there).expect("a record"), 1 << 40, &mut moved);
            let copy = Message::decode(&moved[6..]).expect("a record");
            assert_eq!(copy.physical_offset(), 1 << 40);
            assert_ne!(properties::check_crc(copy.record()), Some(false));
            let mut back = Vec::new();
            append_at(&copy, 4, &mut back);
            assert_eq!(back, there);
        }
    }

    #[test]
    fn a_wrong_property_crc_stays_wrong() {
        let mut reserved = Vec::new();
        properties::reserve_crc(&mut reserved);
        let mut there = record(&reserved);
        there[20] ^= 1;
        let mut moved = Vec::new();
        append_at(&Message::decode(&there).expect("a record"), 9, &mut moved);
        assert_eq!(properties::check_crc(&moved), Some(false));
    }
}
