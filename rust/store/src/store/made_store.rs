//! A store made for a unit test.
use crate::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use crate::store::{MessageStore, OpenOptions};
use tempfile::TempDir;

/// Returns a closed store with one queue of equal messages of the topic `T`.
pub fn store_of(messages: usize, body: usize, options: AppendOptions) -> (TempDir, MessageStore) {
    let dir = tempfile::tempdir().expect("dir");
    let options = AppendOptions { index_slots: 16, index_entries: 9_000, ..options };
    let appender = Appender::open(dir.path(), options).expect("new");
    let message = OwnedMessage { topic: "T".into(), body: vec![b'x'; body], ..OwnedMessage::default() };
    appender.append(&Messages::new(vec![message; messages]), None, 0).expect("appended");
    appender.close().expect("closed");
    let store = MessageStore::open(dir.path(), &OpenOptions::default()).expect("opened");
    (dir, store)
}
