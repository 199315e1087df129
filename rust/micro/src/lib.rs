//! Makes messages and a store for benchmarks. The messages belong to one topic with four queues. One message in a
//! hundred has the tag that benchmarks search for.
#![allow(missing_docs)]

use arrow_array::{ArrayRef, BinaryArray, Int32Array, RecordBatch, StringArray};
use rmqfast_store::store::append::{AppendOptions, Appender, Columns};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

pub const TOPIC: &str = "orders";
/// The tag that benchmarks search for.
pub const TAG: &str = "tag07";
pub const TAGS: usize = 100;
const QUEUES: usize = 4;
const BODY: usize = 128;

pub fn tag(n: usize) -> String {
    format!("tag{:02}", n % TAGS)
}

pub fn key(n: usize) -> String {
    format!("order-{:08}", n * 7919)
}

/// Returns the body of message `n`: the number `n`, repeated.
pub fn body(n: usize) -> Vec<u8> {
    vec![n as u8; BODY]
}

/// Returns `count` messages as rows to append.
pub fn columns(count: usize) -> Columns {
    columns_of(count, body)
}

fn columns_of(count: usize, body: impl Fn(usize) -> Vec<u8>) -> Columns {
    let columns: [(&str, ArrayRef); 5] = [
        ("topic", Arc::new(StringArray::from(vec![TOPIC; count]))),
        ("body", Arc::new(BinaryArray::from_iter_values((0..count).map(body)))),
        ("tags", Arc::new(StringArray::from_iter_values((0..count).map(tag)))),
        ("keys", Arc::new(StringArray::from_iter_values((0..count).map(key)))),
        // a tag is in every queue
        ("queue_id", Arc::new(Int32Array::from_iter_values((0..count).map(|n| (n / TAGS % QUEUES) as i32)))),
    ];
    Columns::new(&RecordBatch::try_from_iter(columns).expect("columns of one length")).expect("columns of a message")
}

/// Creates a store in `directory` and returns its appender. Its files are no larger than the benchmarks need.
pub fn appender(directory: &Path) -> Appender {
    let (index_slots, index_entries) = (1 << 16, 1 << 18);
    let options = AppendOptions { file_size: 16 << 20, index_slots, index_entries, ..AppendOptions::default() };
    Appender::open(&directory.join("store"), options).expect("a new store")
}

/// Creates a store of `count` messages in a temporary directory. Dropping the directory removes the store.
pub fn store(count: usize) -> (TempDir, MessageStore) {
    store_of(count, body)
}

/// Creates a store as [`store`] does, with other bodies.
pub fn store_of(count: usize, body: impl Fn(usize) -> Vec<u8>) -> (TempDir, MessageStore) {
    let directory = tempfile::tempdir().expect("a directory");
    let appender = appender(directory.path());
    appender.append(&columns_of(count, body), None, 0).expect("appended");
    appender.close().expect("closed");
    let store = MessageStore::open(&directory.path().join("store"), &OpenOptions::default()).expect("opened");
    (directory, store)
}
