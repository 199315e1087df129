//! How fast messages are appended, beside a loop that only writes the bytes of their records to fresh files.
//!
//! `append_loop DIR COUNT` makes and removes stores below DIR and prints a JSON line for each measurement: name, rows,
//! seconds. Nothing is flushed to the disk, by neither.
use arrow_array::{ArrayRef, BinaryArray, Int32Array, RecordBatch, StringArray};
use rmqfast_store::file::Allocated;
use rmqfast_store::format::message::MIN_LEN;
use rmqfast_store::store::append::{AppendOptions, Appender, Columns, Messages, OwnedMessage};
use rmqfast_store::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const BATCH: usize = 65_536;
const BUFFER: usize = 1 << 20;
const FILE: u64 = 1 << 30;
const TOPIC: &str = "orders";
const TAG: &str = "TagA";

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap_or_else(|| "/tmp/append_loop".into()));
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    for body in [1024, 128] {
        let batch = batch(body);
        let keys_len = "order-000000000".len();
        let properties = "KEYS".len() + 1 + keys_len + 1 + "TAGS".len() + 1 + TAG.len();
        let record = MIN_LEN + body + TOPIC.len() + properties;
        report(&format!("bare pwrite, {body} B bodies"), count, || bare(&directory, record * count))?;
        report(&format!("append, {body} B bodies"), count, || append(&directory, &batch, count))?;
        report(&format!("append one a call, {body} B bodies"), count, || singly(&directory, body, count))?;
    }
    Ok(())
}

/// Runs `work`, which says how many seconds count, and removes what it wrote.
fn report(name: &str, rows: usize, work: impl FnOnce() -> Result<f64>) -> Result<()> {
    let seconds = work()?;
    println!("{{\"name\": \"{name}\", \"rows\": {rows}, \"seconds\": {seconds:.3}}}");
    Ok(())
}

fn bare(directory: &Path, bytes: usize) -> Result<f64> {
    let root = fresh(directory)?;
    let buffer = vec![7; BUFFER];
    let started = Instant::now();
    let mut left = bytes;
    let mut base = 0;
    while left > 0 {
        let file = Allocated::create(&root.join(format!("{base:020}")), FILE)?;
        let mut at = 0;
        while left > 0 && at < FILE {
            let part = left.min(BUFFER);
            file.write(&buffer[..part], at)?;
            at += part as u64;
            left -= part;
        }
        base += FILE;
    }
    finished(&root, started)
}

fn append(directory: &Path, batch: &RecordBatch, count: usize) -> Result<f64> {
    let root = fresh(directory)?;
    let appender = Appender::open(&root, AppendOptions::default())?;
    let started = Instant::now();
    let mut left = count;
    while left > 0 {
        let rows = left.min(BATCH);
        appender.append(&Columns::new(&batch.slice(0, rows))?, None, 0)?;
        left -= rows;
    }
    finished(&root, started)
}

fn singly(directory: &Path, body_len: usize, count: usize) -> Result<f64> {
    let root = fresh(directory)?;
    let appender = Appender::open(&root, AppendOptions::default())?;
    let messages = (0..BATCH).map(|n| OwnedMessage {
        topic: TOPIC.into(),
        body: vec![n as u8; body_len],
        tags: Some(TAG.into()),
        keys: Some(format!("order-{:08}", n * 7919)),
        queue_id: n as i64 % 4,
        ..OwnedMessage::default()
    });
    let messages: Vec<_> = messages.map(|message| Messages::new(vec![message])).collect();
    let started = Instant::now();
    for message in messages.iter().cycle().take(count) {
        appender.append(message, None, 0)?;
    }
    finished(&root, started)
}

fn fresh(directory: &Path) -> Result<PathBuf> {
    let root = directory.join("store");
    fs::create_dir_all(&root).map_err(|e| Error::io(&root, e))?;
    Ok(root)
}

fn finished(root: &Path, started: Instant) -> Result<f64> {
    let seconds = started.elapsed().as_secs_f64();
    fs::remove_dir_all(root).map_err(|e| Error::io(root, e))?;
    Ok(seconds)
}

/// Messages of one topic in four queues, each with a tag and a key of its own.
fn batch(body_len: usize) -> RecordBatch {
    let bodies: Vec<Vec<u8>> = (0..BATCH).map(|n| vec![n as u8; body_len]).collect();
    let keys: Vec<String> = (0..BATCH).map(|n| format!("order-{:08}", n * 7919)).collect();
    let columns: [(&str, ArrayRef); 5] = [
        ("topic", Arc::new(StringArray::from(vec![TOPIC; BATCH]))),
        ("body", Arc::new(BinaryArray::from_iter_values(&bodies))),
        ("tags", Arc::new(StringArray::from(vec![TAG; BATCH]))),
        ("keys", Arc::new(StringArray::from(keys))),
        ("queue_id", Arc::new(Int32Array::from_iter_values((0..BATCH as i32).map(|n| n % 4)))),
    ];
    RecordBatch::try_from_iter(columns).unwrap_or_else(|error| panic!("columns of one length: {error}"))
}
