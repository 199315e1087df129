//! How many appends a second reach the disk when many threads wait for each of theirs, beside a loop that writes groups as large
//! as theirs were on average, and waits once for each.
//!
//! `sync_loop DIR THREADS MESSAGES BODY` makes and removes files below DIR and prints a JSON line for each: name, rows, seconds.
use rmqfast_store::file::AllocatedFile;
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::store::append::{AppendOptions, Appender, Flush, Messages, OwnedMessage};
use rmqfast_store::{Error, Result};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const FILE: u64 = 1 << 30;
/// Bytes of a record beside its body, here.
const OVERHEAD: usize = 91 + 6;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).and_then(|n| n.parse().ok()).unwrap_or(default);
    let directory = arguments.first().map_or("/tmp/sync_loop", String::as_str);
    let (threads, messages, body) = (number(1, 64), number(2, 20_000), number(3, 1024));
    let root = Path::new(directory).join("store");
    let syncs = Arc::new(Syncs::default());
    let watch = disk::watch(&root, syncs.clone());
    report("sync appends", messages, &root, |root| appends(root, threads, messages, body))?;
    drop(watch);
    let group = messages / syncs.0.load(Ordering::Relaxed).max(1);
    report("bare groups", messages, &root, |root| bare(root, group.max(1), messages, body))
}

/// Counts the waits for the log.
#[derive(Default)]
struct Syncs(AtomicUsize);

impl Watcher for Syncs {
    fn before(&self, _: Call, _: &Path) -> std::io::Result<()> {
        Ok(())
    }
    fn after(&self, call: Call, path: &Path) {
        if call == Call::Sync && path.parent().is_some_and(|parent| parent.ends_with("commitlog")) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn report(name: &str, rows: usize, root: &Path, work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    fs::create_dir_all(root).map_err(|e| Error::io(root, e))?;
    let started = Instant::now();
    work(root)?;
    println!("{{\"name\": \"{name}\", \"rows\": {rows}, \"seconds\": {:.3}}}", started.elapsed().as_secs_f64());
    fs::remove_dir_all(root).map_err(|e| Error::io(root, e))
}

fn bare(root: &Path, group: usize, messages: usize, body: usize) -> Result<()> {
    eprintln!("groups of {group}");
    let file = AllocatedFile::create(&root.join("log"), FILE)?;
    let bytes = vec![7; group * (body + OVERHEAD)];
    for n in 0..messages.div_ceil(group) {
        file.write(&bytes, (n * bytes.len()) as u64)?;
        file.sync()?;
    }
    Ok(())
}

fn appends(root: &Path, threads: usize, messages: usize, body: usize) -> Result<()> {
    let options = AppendOptions { flush: Flush::Sync, file_size: FILE, ..AppendOptions::default() };
    let appender = Appender::open(root, options)?;
    let message = OwnedMessage { topic: "orders".into(), body: vec![7; body], ..OwnedMessage::default() };
    let append = || {
        for _ in 0..messages.div_ceil(threads) {
            appender.append(&Messages::new(vec![message.clone()]), None, 0)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(append)).collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
