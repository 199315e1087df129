//! The body of a pull's answer of any bytes: what is taken is all of it, record behind record, and as messages and as columns
//! there are as many.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_client::fetched::{Part, batches_of_parts};
use rmqfast_client::{Message, pull_body};
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::row::Row;

/// Of a body that is decompressed: what is fuzzed is small, and may say that it was large.
const CAP: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let placed = pull_body::rows(bytes);
    let Ok(rows) = pull_body::messages(bytes, None) else {
        assert!(placed.is_err(), "both look at the same records");
        return;
    };
    assert_eq!(placed.expect("as with properties").len(), rows.len());
    let end = rows.iter().fold(0, |at, row| {
        assert_eq!(row.at as usize, at);
        at + row.layout.total as usize
    });
    assert_eq!(end, bytes.len());
    rows.iter().for_each(|row| check(bytes, row));
    let changed = rows.iter().filter(|row| row.message(bytes).is_some_and(|record| !record.body_crc_matches())).count();
    assert_eq!(pull_body::rows_with_wrong_crc(bytes).expect("as without").len(), changed);
    check_columns(bytes, &rows);
});

fn check(bytes: &[u8], row: &Row) {
    let message = Message::new(bytes, row).expect("a row lies in its body");
    let (properties, hosts) = (message.properties(), [message.born_host(), message.store_host()]);
    assert!(hosts.iter().all(|host| host.contains(':')));
    assert!(matches!(message.offset_msg_id().len(), 32 | 56));
    assert!(message.body(CAP).is_none_or(|body| body.len() <= CAP.max(message.record().body().len())));
    let tag = message.tags().map(|tag| tag.as_bytes().to_vec());
    assert!(pull_body::has_tag(bytes, row, tag.map(|tag| [tag].into()).as_ref()));
    let _ = (properties, message.topic(), message.msg_id(), message.keys(), message.transaction_id());
}

fn check_columns(bytes: &[u8], rows: &[Row]) {
    let request = ScanRequest { max_body_bytes: CAP, batch_rows: 7, ..ScanRequest::default() };
    let (batches, ..) = batches_of_parts([Part { body: bytes, rows }], &request).expect("the columns fit their schema");
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), rows.len());
}
