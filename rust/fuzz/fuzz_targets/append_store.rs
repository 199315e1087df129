//! A store of any bytes, opened to append: it opens, or says why not; a repair has a way; it takes messages, and opens again.
//!
//! The first byte says how many units of 20 bytes at the end of the input are the consume queue of topic `T`; the lowest bit of the second
//! byte whether the store was closed.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_store::Error;
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage, missing_end, repair};
use std::fs;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[units, kind], rest)) = bytes.split_first_chunk() else { return };
    let (log, queue) = rest.split_at(rest.len().saturating_sub(usize::from(units % 16) * 20));
    let dir = tempfile::tempdir().expect("a directory");
    write(&dir.path().join("commitlog"), log);
    write(&dir.path().join("consumequeue/T/0"), queue);
    if kind & 1 == 1 {
        fs::write(dir.path().join("abort"), b"").expect("written");
    }
    for _ in 0..2 {
        let Some(appender) = opened(dir.path()) else { return };
        let message = OwnedMessage { topic: "T".into(), keys: Some("k".into()), ..OwnedMessage::default() };
        match appender.append(&Messages::new(vec![message; 3]), None, 0) {
            // the files of the log are smaller than a message
            Err(Error::Invalid { .. }) if log.len() < 256 => return,
            appended => appended.expect("appended"),
        };
        appender.close().expect("closed");
    }
});

fn write(directory: &Path, bytes: &[u8]) {
    fs::create_dir_all(directory).expect("created");
    fs::write(directory.join(format!("{:020}", 0)), bytes).expect("written");
}

fn options() -> AppendOptions {
    let small = AppendOptions { file_size: 4096, queue_file_size: 400, ..AppendOptions::default() };
    AppendOptions { index_slots: 16, index_entries: 40, ..small }
}

/// `None` where the log is damaged in its middle, and is left to be read.
fn opened(root: &Path) -> Option<Appender> {
    if let Ok(appender) = Appender::open(root, options()) {
        return Some(appender);
    }
    let at = missing_end(root).ok()?.map(|missing| missing.log_end);
    repair(root, options(), at, &mut |_, _| Ok(())).ok()?;
    Some(Appender::open(root, options()).expect("repaired"))
}
