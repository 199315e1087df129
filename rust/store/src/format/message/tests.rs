//! Records of real brokers, round trips, truncated and damaged records.
use super::*;
use crate::format::host::Host;
use proptest::prelude::*;

const V1: &str = "00000081daa320a73610a686000000000000000700000000000000000000000000000000000000000000018bcfe56800\
01020304000015b3000001a1fc12f11f0a00000100002a9f0000000000000000000000000000000568656c6c6f0154\
00204b455953016b31206b3202554e49515f4b455901553102544147530154616741";
const V1_PROPERTY_CRC: &str = "0000008bdaa320a73610a686000000000000000700000000000000000000000000000000000000000000018bcfe56800\
01020304000015b3000001a1fc1c0f6d0a00000100002a9f0000000000000000000000000000000568656c6c6f0154\
002a554e49515f4b455901553102544147530154616741025f5f435243333223013037343635323134363002";

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

fn host(text: &str) -> Host {
    Host::from(text.parse::<std::net::SocketAddr>().expect("an address"))
}

fn sample<'a>(body: &'a [u8], topic: &'a str, properties: &'a [u8]) -> NewMessage<'a> {
    NewMessage {
        queue_id: 3,
        flag: -7,
        queue_offset: 11,
        physical_offset: 4096,
        sys_flag: 0,
        born_timestamp: 1_700_000_000_000,
        born_host: host("1.2.3.4:5555"),
        store_timestamp: 1_795_000_000_000,
        store_host: host("10.0.0.1:10911"),
        reconsume_times: 2,
        prepared_transaction_offset: 9,
        body,
        topic,
        properties,
    }
}

#[test]
fn the_record_of_a_4_9_broker_decodes() {
    let bytes = unhex(V1);
    let message = Message::decode(&bytes).expect("a message");
    assert_eq!((message.topic(), message.body()), (&b"T"[..], &b"hello"[..]));
    assert_eq!((message.flag(), message.queue_id(), message.queue_offset()), (7, 0, 0));
    assert_eq!(message.property("KEYS"), Some(&b"k1 k2"[..]));
    assert_eq!(Host::decode(message.born_host()), Some(host("1.2.3.4:5555")));
    assert_eq!(Host::decode(message.store_host()), Some(host("10.0.0.1:10911")));
    assert_eq!(message.store_timestamp(), 0x1a1_fc12_f11f);
    assert!(message.body_crc_matches());
}

#[test]
fn encoding_gives_the_bytes_of_a_4_9_broker() {
    let bytes = unhex(V1);
    let properties = b"KEYS\x01k1 k2\x02UNIQ_KEY\x01U1\x02TAGS\x01TagA";
    let new = NewMessage {
        queue_id: 0,
        flag: 7,
        queue_offset: 0,
        physical_offset: 0,
        store_timestamp: 0x1a1_fc12_f11f,
        born_timestamp: 0x18b_cfe5_6800,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        ..sample(b"hello", "T", properties)
    };
    let mut out = Vec::new();
    new.encode(&mut out).expect("encodes");
    assert_eq!(out, bytes);
}

#[test]
fn encoding_gives_the_property_crc_of_a_5_x_broker() {
    let bytes = unhex(V1_PROPERTY_CRC);
    assert_eq!(properties::check_crc(&bytes), Some(true));
    let mut props = b"UNIQ_KEY\x01U1\x02TAGS\x01TagA\x02".to_vec();
    properties::reserve_crc(&mut props);
    let new = NewMessage {
        queue_id: 0,
        flag: 7,
        queue_offset: 0,
        physical_offset: 0,
        store_timestamp: 0x1a1_fc1c_0f6d,
        born_timestamp: 0x18b_cfe5_6800,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        ..sample(b"hello", "T", &props)
    };
    let mut out = Vec::new();
    new.encode(&mut out).expect("encodes");
    assert_eq!(out, bytes);
}

#[test]
fn every_truncation_is_partial_or_unwritten() {
    let bytes = unhex(V1);
    for len in 0..bytes.len() {
        match Layout::decode(&bytes[..len]) {
            Ok(Item::Partial(needs)) => assert!(needs > len),
            Ok(Item::Unwritten) => assert!(len <= 3, "{len}"),
            other => panic!("{len}: {other:?}"),
        }
    }
}

#[test]
fn a_flip_in_a_length_or_the_body_is_noticed() {
    let bytes = unhex(V1);
    let layout = *Message::decode(&bytes).expect("a message").layout();
    let lengths = [0..8, 84..88, layout.topic as usize - 1..layout.topic as usize, 95..97];
    let body = layout.body as usize..(layout.body + layout.body_len) as usize;
    for at in lengths.into_iter().flatten().chain(body).chain(8..12) {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let sound = Message::decode(&flipped).is_some_and(|m| m.body_crc_matches());
            assert!(!sound, "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn blanks_and_unwritten_bytes_are_told_apart() {
    assert_eq!(Layout::decode(&encode_blank(9)), Ok(Item::Blank(9)));
    assert_eq!(Layout::decode(&[0; 200]), Ok(Item::Unwritten));
    assert!(Layout::decode(&encode_blank(7)).is_err());
    assert!(Layout::decode(&[1; 200]).is_err());
}

#[test]
fn what_a_length_field_cannot_tell_is_refused() {
    let long = "t".repeat(40_000);
    let mut out = Vec::new();
    let error = sample(b"", &long, b"").encode(&mut out).expect_err("too long");
    assert_eq!(error.to_string(), "topic length at +0: expected at most 32767, got 40000");
    assert!(sample(b"", "t", &vec![b'x'; 32_768]).encode(&mut out).is_err());
    assert!(out.is_empty());
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_the_same(
        body in proptest::collection::vec(any::<u8>(), 0..300),
        topic in "[a-zA-Z0-9_%|-]{1,200}",
        value in "[^\u{1}\u{2}]{1,40}",
        v6 in any::<(bool, bool)>(),
        sys_flag in 0..0x800_i32,
        flag in any::<i32>(),
        offset in 0..i64::MAX,
    ) {
        let mut props = Vec::new();
        properties::push(&mut props, "TAGS", &value);
        let mut new = NewMessage { sys_flag, flag, queue_offset: offset, ..sample(&body, &topic, &props) };
        if v6.0 { new.born_host = host("[::1]:1"); }
        if v6.1 { new.store_host = host("[fd00::2]:65535"); }
        let mut out = b"before".to_vec();
        new.encode(&mut out).expect("encodes");
        let record = &out[6..];
        prop_assert_eq!(record.len(), new.encoded_len());
        let message = Message::decode(record).expect("decodes");
        prop_assert_eq!(message.body(), &body[..]);
        prop_assert_eq!(message.topic(), topic.as_bytes());
        prop_assert_eq!(message.property("TAGS"), Some(value.as_bytes()));
        prop_assert_eq!((message.flag(), message.queue_offset()), (flag, offset));
        prop_assert_eq!(message.layout().sys_flag & !0x30, sys_flag & !0x30);
        prop_assert_eq!(Host::decode(message.born_host()), Some(new.born_host));
        prop_assert_eq!(Host::decode(message.store_host()), Some(new.store_host));
        prop_assert_eq!((message.reconsume_times(), message.prepared_transaction_offset()), (2, 9));
        prop_assert!(message.body_crc_matches());
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), magic in 0..3) {
        if bytes.len() >= 8 {
            let codes = [MAGIC_V1, MAGIC_V2, BLANK_MAGIC];
            bytes[4..8].copy_from_slice(&codes[magic as usize].to_be_bytes());
            bytes[..2].fill(0);
        }
        if let Some(message) = Message::decode(&bytes) {
            let _ = (message.body(), message.topic(), message.properties(), message.store_host());
        }
    }
}
