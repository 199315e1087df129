//! A store of any bytes, scanned by both ways: it ends, and rows are records whose offset and CRC are right.
//!
//! The first byte says how many units of 20 bytes at the end of the input are the consume queue of topic `T`; the second
//! byte where the commit log is cut in two files.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_store::scan::{Plan, Scan, ScanRequest, Way};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::fs;
use std::path::Path;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[units, cut], rest)) = bytes.split_first_chunk() else { return };
    let (log, queue) = rest.split_at(rest.len().saturating_sub(usize::from(units % 16) * 20));
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), log, log.len() * usize::from(cut) / 255, queue);
    let store = MessageStore::open(dir.path(), &OpenOptions::default()).expect("a store");
    for topic in [None, Some("T".to_owned())] {
        for way in [Way::Log, Way::Queue] {
            for pieces in [u64::MAX, 64] {
                let request = ScanRequest { topic: topic.clone(), verify_crc: true, ..ScanRequest::default() };
                scan(&store, request, way, pieces);
            }
        }
    }
});

fn write(root: &Path, log: &[u8], cut: usize, queue: &[u8]) {
    let (commit_log, queue_dir) = (root.join("commitlog"), root.join("consumequeue/T/0"));
    fs::create_dir_all(&commit_log).expect("created");
    fs::create_dir_all(&queue_dir).expect("created");
    let (first, second) = log.split_at(cut);
    fs::write(commit_log.join(format!("{:020}", 0)), first).expect("written");
    if cut > 0 {
        fs::write(commit_log.join(format!("{cut:020}")), second).expect("written");
    }
    fs::write(queue_dir.join(format!("{:020}", 0)), queue).expect("written");
}

fn scan(store: &MessageStore, request: ScanRequest, way: Way, piece_bytes: u64) {
    let mut plan = Plan::new(store, &request, Some(way)).expect("topic T has a queue");
    plan.cut(piece_bytes, 1).expect("readable");
    let mut scan = Scan::new(plan.sources, Arc::new(request), plan.pieces, 1);
    while let Some(batch) = scan.next_batch(&mut || Ok(())).expect("readable") {
        assert!(batch.num_rows() > 0);
    }
    let _ = scan.damage().entries().iter().map(ToString::to_string).collect::<Vec<_>>();
}
