//! Bodies as brokers send them, and damaged bodies.
use super::*;
use crate::Message;
use proptest::prelude::*;
use rmqfast_store::format::host::Host;
use rmqfast_store::format::message::NewMessage;
use rmqfast_store::format::properties::push;
use std::net::SocketAddr;

fn host(text: &str) -> Host {
    Host::from(text.parse::<SocketAddr>().expect("an address"))
}

fn record(queue_offset: i64, tags: &str, properties: &[(&str, &str)], out: &mut Vec<u8>) {
    let mut text = Vec::new();
    if !tags.is_empty() {
        push(&mut text, "TAGS", tags);
    }
    properties.iter().for_each(|(name, value)| push(&mut text, name, value));
    let message = NewMessage {
        queue_id: 3,
        flag: 7,
        queue_offset,
        physical_offset: 1000 * queue_offset,
        sys_flag: 0,
        born_timestamp: 5,
        born_host: host("1.2.3.4:55"),
        store_timestamp: 6,
        store_host: host("[::1]:10911"),
        reconsume_times: 2,
        prepared_transaction_offset: 9,
        body: b"hello",
        topic: "orders",
        properties: &text,
    };
    message.encode(out).expect("a record");
}

fn three() -> Vec<u8> {
    let mut body = Vec::new();
    record(10, "TagA", &[("KEYS", "k1 k2"), ("UNIQ_KEY", "ID10"), ("TRAN_MSG", "True")], &mut body);
    record(11, "", &[("a", "1"), ("b", "2"), ("a", "3")], &mut body);
    record(12, "TagB", &[], &mut body);
    body
}

fn tags(names: &[&str]) -> Tags {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

#[test]
fn each_record_is_a_message_with_the_values_of_the_row() {
    let body = three();
    let rows = messages(&body, None).expect("sound");
    let found: Vec<_> = rows.iter().map(|row| Message::new(&body, row).expect("within")).collect();
    assert_eq!(found.iter().map(|m| m.record().queue_offset()).collect::<Vec<_>>(), [10, 11, 12]);
    let (first, second) = (found[0], found[1]);
    assert_eq!((first.topic().as_ref(), first.msg_id().as_ref()), ("orders", "ID10"));
    assert_eq!((first.tags().as_deref(), first.keys().as_deref()), (Some("TagA"), Some("k1 k2")));
    assert_eq!((first.born_host(), first.store_host()), ("1.2.3.4:55".into(), "[::1]:10911".into()));
    assert_eq!(first.transaction_id().as_deref(), Some("ID10"));
    assert_eq!(first.body(0).as_deref(), Some(&b"hello"[..]));
    let id = format!("{}00002A9F{:016X}", "0".repeat(31) + "1", 11_000);
    assert_eq!((second.msg_id().as_ref(), second.offset_msg_id()), (id.as_str(), id.clone()));
    assert_eq!((second.tags(), second.transaction_id(), second.property("a").as_deref()), (None, None, Some("3")));
    assert_eq!(second.properties(), [("a".into(), "3".into()), ("b".into(), "2".into())]);
}

#[test]
fn a_client_compares_whole_tags_and_drops_what_has_none() {
    let body = three();
    let offsets = |wanted: &[&str]| {
        let rows = messages(&body, Some(&tags(wanted))).expect("sound");
        rows.iter().map(|row| Message::new(&body, row).expect("within").record().queue_offset()).collect::<Vec<_>>()
    };
    assert_eq!(offsets(&["TagA"]), [10]);
    assert_eq!(offsets(&["TagB", "Tag"]), [12]);
    // an expression of blanks matches nothing
    assert!(offsets(&[]).is_empty());
}

#[test]
fn what_is_no_record_is_an_error_that_says_where() {
    let body = three();
    let second = rows(&body).expect("sound")[1].at as usize;
    let text = |body: &[u8]| rows(body).expect_err("malformed").to_string();
    assert!(text(&body[..body.len() - 1]).contains("expected a record of"), "{}", text(&body[..body.len() - 1]));
    let with = |at: usize, byte: u8| {
        let mut body = body.clone();
        body[at] ^= byte;
        text(&body)
    };
    assert!(with(second + 5, 1).starts_with(&format!("malformed body of a pull at byte {second}: magic code")));
    assert!(with(second + 99, 1).contains(&format!("byte {second}: ")));
    assert!(text(&[&body[..], &[0; 8]].concat()).ends_with("expected a message, got zeroes"));
    let blank = [&body[..], &rmqfast_store::format::message::encode_blank(8)].concat();
    assert!(text(&blank).ends_with("expected a message, got the end of a file"));
}

#[test]
fn a_changed_body_is_found_by_its_crc() {
    let mut body = three();
    let row = rows(&body).expect("sound")[2];
    assert!(rows_with_wrong_crc(&body).expect("sound").is_empty());
    body[(row.at + row.layout.body) as usize] ^= 1;
    let found = rows_with_wrong_crc(&body).expect("records, still");
    assert_eq!(found.iter().map(|row| row.at).collect::<Vec<_>>(), [row.at]);
    assert_eq!(Message::new(&body, &found[0]).expect("within").tags().as_deref(), Some("TagB"));
    assert_eq!(rows(&body).expect("records, still").len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_change_of_a_body_makes_a_client_panic(
        changes in prop::collection::vec((0_usize..1000, any::<u8>()), 0..12),
        cut in 0_usize..1000,
        sys_flag in any::<[u8; 4]>(),
        flips_flags in any::<bool>(),
    ) {
        let mut body = three();
        if flips_flags {
            body[36..40].copy_from_slice(&sys_flag);
        }
        for (at, byte) in changes {
            let at = at % body.len();
            body[at] = byte;
        }
        body.truncate(body.len() - cut % body.len() / 3);
        if let Ok(rows) = messages(&body, None) {
            for row in &rows {
                let message = Message::new(&body, row).expect("within the body");
                let _ = (message.topic(), message.msg_id(), message.offset_msg_id(), message.tags(), message.keys());
                let _ = (message.born_host(), message.store_host(), message.body(1 << 16), message.properties());
                let _ = (message.transaction_id(), message.property("a"));
            }
            prop_assert_eq!(rows.iter().map(|row| row.layout.total as usize).sum::<usize>(), body.len());
        }
    }
}
