//! How fast one thread appends, beside a loop that only copies as many bytes into fresh files the fastest way there is: through a
//! map whose pages a second thread makes ready.
//!
//! `append_loop many|singly|bare DIR COUNT BODY` makes and removes a store below DIR and prints a JSON line: name, rows, seconds.
//! Nothing waits for the disk.
use rmqfast_store::file::{AllocatedFile, AppendFile};
use rmqfast_store::format::message::MIN_LEN;
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_store::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Messages in hand, which are appended again and again; those of a call of `many`.
const IN_HAND: usize = 16_384;
const MANY: usize = 1024;
const BLOCK: usize = 1 << 20;
const FILE: u64 = 1 << 30;
const AHEAD: u64 = 16 << 20;
const TOPIC: &str = "bench";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |at: usize, default: &'static str| arguments.get(at).map_or(default, String::as_str).to_owned();
    let number = |at: usize, default: usize| arguments.get(at).and_then(|n| n.parse().ok()).unwrap_or(default);
    let (what, root) = (text(0, "singly"), PathBuf::from(text(1, "/tmp/append_loop")).join("store"));
    let (count, body) = (number(2, 1_000_000), number(3, 1024));
    fs::create_dir_all(&root).map_err(|e| Error::io(&root, e))?;
    let seconds = match what.as_str() {
        "bare" => bare(&root, stored_len(body) * count as u64)?,
        "many" => append(&root, count, body, MANY)?,
        _ => append(&root, count, body, 1)?,
    };
    println!("{{\"name\": \"{what}\", \"rows\": {count}, \"seconds\": {seconds:.4}}}");
    fs::remove_dir_all(&root).map_err(|e| Error::io(&root, e))
}

fn append(root: &Path, count: usize, body: usize, a_call: usize) -> Result<f64> {
    let appender = Appender::open(root, AppendOptions::default())?;
    let messages: Vec<_> = (0..IN_HAND).map(|row| message(row, body)).collect();
    let calls: Vec<_> = messages.chunks(a_call).map(|rows| Messages::new(rows.to_vec())).collect();
    let started = Instant::now();
    let mut appended = 0;
    for rows in calls.iter().cycle() {
        appended += appender.append(rows, None, 0)?.rows;
        if appended >= count {
            break;
        }
    }
    Ok(started.elapsed().as_secs_f64() * count as f64 / appended as f64)
}

/// Copies as many bytes as an indexed store of the messages takes.
fn bare(root: &Path, bytes: u64) -> Result<f64> {
    let mut files: Vec<_> = (0..bytes.div_ceil(FILE)).map(|n| file(root, n)).collect::<Result<_>>()?;
    let pages: Vec<_> = files.iter().map(AppendFile::pages).collect();
    let (written, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut touched = 0;
            while touched < bytes && !is_over.load(Ordering::Relaxed) {
                if touched > written.load(Ordering::Relaxed) + AHEAD {
                    std::thread::sleep(std::time::Duration::from_micros(200));
                } else {
                    let at = touched % FILE;
                    pages[(touched / FILE) as usize].iter().for_each(|pages| pages.touch(at..at + BLOCK as u64));
                    touched += BLOCK as u64;
                }
            }
        });
        let block = vec![7; BLOCK];
        let started = Instant::now();
        for at in (0..bytes).step_by(BLOCK) {
            let part = &block[..(bytes - at).min(BLOCK as u64) as usize];
            files[(at / FILE) as usize].write(part, at % FILE, 0..4)?;
            written.store(at, Ordering::Relaxed);
        }
        is_over.store(true, Ordering::Relaxed);
        Ok(started.elapsed().as_secs_f64())
    })
}

fn file(root: &Path, number: u64) -> Result<AppendFile> {
    AppendFile::new(AllocatedFile::create(&root.join(format!("{:020}", number * FILE)), FILE)?)
}

/// A message as a producer sends it: its properties are TAGS, KEYS, UNIQ_KEY and WAIT.
fn message(row: usize, body: usize) -> OwnedMessage {
    let pair = |name: &str, value: String| (name.to_owned(), value);
    OwnedMessage {
        topic: TOPIC.into(),
        body: vec![row as u8; body],
        tags: Some(format!("tag{:02}", row % 100)),
        keys: Some(format!("tag00-{row:011}")),
        properties: vec![pair("UNIQ_KEY", format!("7F0000011A2B18B4AAC2{row:012X}")), pair("WAIT", "true".into())],
        queue_id: row as i64 % 4,
        ..OwnedMessage::default()
    }
}

/// Bytes of a record, its unit and its two index entries.
fn stored_len(body: usize) -> u64 {
    let properties = "KEYS.tag00-00000000000.TAGS.tag00.UNIQ_KEY.7F0000011A2B18B4AAC2000000000000.WAIT.true";
    (MIN_LEN + body + TOPIC.len() + properties.len() + 20 + 2 * 20) as u64
}
