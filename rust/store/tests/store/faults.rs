//! A disk that loses power, that fails, and what an appender makes of it.
//!
//! At a loss of power each sector that was written and not waited for is old or new, each name that was not waited for is there
//! or not. `RMQFAST_SEEDS` says how many seeds are tried, `RMQFAST_SEED` which one alone.
use crate::chance::Chance;
use crate::directory;
use crate::figures::{Figures, Found};
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::format::message::Message;
use rmqfast_store::store::append::{AppendOptions, Appender, Flush, Messages, OwnedMessage};
use rmqfast_store::store::commit_log::DamageLog;
use rmqfast_store::store::retain::{RetainOptions, preview};
use rmqfast_store::store::{LogWalk, MessageStore, OpenOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

mod config;

const STORED_AT: i64 = 1_700_000_000_000;
fn options(flush: Flush) -> AppendOptions {
    AppendOptions {
        flush,
        file_size: 4096,
        queue_file_size: 200,
        index_slots: 16,
        index_entries: 40,
        ..AppendOptions::default()
    }
}

fn message(n: u64) -> OwnedMessage {
    OwnedMessage {
        topic: ["orders", "clicks"][(n % 2) as usize].into(),
        body: format!("{n:08}").repeat(1 + (n * 7 % 40) as usize).into_bytes(),
        keys: (!n.is_multiple_of(3)).then(|| format!("k{n}")),
        queue_id: (n / 2 % 3) as i64,
        ..OwnedMessage::default()
    }
}

/// What of a directory is on the disk for sure; contents by inode, as a file may get another name.
#[derive(Debug, Default)]
struct Durable {
    contents: BTreeMap<u64, Vec<u8>>,
    names: BTreeSet<PathBuf>,
    removed: BTreeMap<PathBuf, Vec<u8>>,
}

/// Watches the calls below one directory.
struct Sectors {
    root: PathBuf,
    durable: Mutex<Durable>,
    /// Calls until there is no power.
    calls_left: AtomicU64,
    /// Whether a whole file system can be waited for, as on Linux.
    knows_sync_all: bool,
}

impl Sectors {
    fn new(root: &Path) -> Arc<Self> {
        Self::made(root, true)
    }

    fn without_sync_all(root: &Path) -> Arc<Self> {
        Self::made(root, false)
    }

    fn made(root: &Path, knows_sync_all: bool) -> Arc<Self> {
        let (root, calls_left) = (root.to_path_buf(), AtomicU64::new(u64::MAX));
        Arc::new(Self { root, durable: Mutex::default(), calls_left, knows_sync_all })
    }

    fn durable(&self) -> MutexGuard<'_, Durable> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Sectors {
    fn before(&self, call: Call, path: &Path) -> io::Result<()> {
        let spend = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(1) };
        if self.calls_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend).is_err() {
            return Err(io::Error::from_raw_os_error(5));
        }
        if call == Call::SyncAll && !self.knows_sync_all {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if call == Call::Remove {
            let mut durable = self.durable();
            let content = inode(path).and_then(|inode| durable.contents.remove(&inode)).unwrap_or_default();
            if durable.names.contains(path) {
                durable.removed.insert(path.to_path_buf(), content);
            }
        }
        Ok(())
    }

    fn after(&self, call: Call, path: &Path) {
        let mut durable = self.durable();
        match call {
            Call::Sync => {
                if let (Some(inode), Ok(content)) = (inode(path), fs::read(path)) {
                    durable.contents.insert(inode, content);
                }
            }
            Call::SyncDirectory => {
                durable.names.retain(|name| name.parent() != Some(path));
                durable.removed.retain(|name, _| name.parent() != Some(path));
                let entries = fs::read_dir(path).into_iter().flatten().flatten();
                durable.names.extend(entries.map(|entry| entry.path()));
            }
            Call::SyncAll => {
                let mut files = BTreeMap::new();
                collect(&self.root, &mut files);
                for (path, content) in files {
                    durable.names.extend(path.ancestors().take_while(|p| *p != self.root).map(Path::to_path_buf));
                    durable.contents.extend(inode(&path).map(|inode| (inode, content)));
                }
                durable.removed.clear();
            }
            _ => {}
        }
    }
}

impl Sectors {
    /// What a loss of power leaves, in another directory.
    fn cut(&self, chance: &mut Chance, into: &Path) {
        let durable = self.durable();
        let sector = [512, 4096][chance.below(2) as usize];
        let kept = [0, 10, 50, 90, 100][chance.below(5) as usize];
        let mut files = BTreeMap::new();
        collect(&self.root, &mut files);
        for (path, content) in &durable.removed {
            if !files.contains_key(path) && chance.below(2) == 0 {
                files.insert(path.clone(), content.clone());
            }
        }
        for (path, content) in files {
            let is_named = path.ancestors().take_while(|p| *p != self.root).all(|p| durable.names.contains(p));
            if !is_named && chance.below(100) >= kept {
                continue;
            }
            let inode = inode(&path).filter(|_| !durable.removed.contains_key(&path));
            let old = match inode {
                Some(inode) => durable.contents.get(&inode).cloned().unwrap_or_default(),
                None => content.clone(),
            };
            let mut left = if old.is_empty() && chance.below(4) == 0 { Vec::new() } else { vec![0; content.len()] };
            for (n, sectors) in left.chunks_mut(sector).enumerate() {
                let take = |bytes: &[u8]| bytes.get(n * sector..n * sector + sectors.len()).map(<[u8]>::to_vec);
                let new = chance.below(100) < kept;
                let bytes = if new { take(&content) } else { take(&old) };
                sectors.copy_from_slice(&bytes.unwrap_or_else(|| vec![0; sectors.len()]));
            }
            let to = into.join(path.strip_prefix(&self.root).expect("below"));
            fs::create_dir_all(to.parent().expect("a parent")).expect("made");
            fs::write(to, left).expect("written");
        }
    }
}

fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|meta| meta.ino())
}

fn collect(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match fs::read(entry.path()) {
            Ok(content) => drop(files.insert(entry.path(), content)),
            Err(_) => collect(&entry.path(), files),
        }
    }
}

type Place = (String, i32, i64);
type Acknowledged = Vec<(Place, Vec<u8>)>;

/// Messages by topic, queue and offset, and how many were there before; no two that were appended have one body.
#[derive(Default)]
struct Stored {
    messages: BTreeMap<Place, Vec<u8>>,
    duplicates: u64,
}

impl Stored {
    /// Nothing damaged, everything listed.
    fn read(root: &Path) -> Self {
        let store = MessageStore::open(root, &OpenOptions::default()).expect("opened");
        let report = store.verify(true, &mut |_, _| Ok(())).expect("read");
        assert_eq!((report.damage.entries(), report.unlisted, report.forgotten), (&[][..], 0, 0));
        let mut walk = LogWalk::new(store.log().clone(), 0, u64::MAX, 0).without_waiting();
        let (mut stored, mut bodies) = (Self::default(), BTreeSet::new());
        while walk.advance(&mut DamageLog::default()).expect("read") {
            let block = walk.block();
            for record in block.records {
                let message = Message::new(&block.bytes[record.at as usize..], record.layout).expect("whole");
                let topic = String::from_utf8_lossy(message.topic()).into_owned();
                let body = message.body().to_vec();
                let is_new = bodies.insert(body.clone());
                let before = stored.messages.insert((topic, message.queue_id(), message.queue_offset()), body);
                stored.duplicates += u64::from(before.is_some() || !is_new);
            }
        }
        stored
    }

    /// What became of messages that were acknowledged.
    fn compared<'a>(&self, acknowledged: impl IntoIterator<Item = &'a (Place, Vec<u8>)>) -> Found {
        let is_lost = |(place, body): &&(Place, Vec<u8>)| self.messages.get(place) != Some(body);
        let lost = acknowledged.into_iter().filter(is_lost).inspect(|(place, _)| println!("{place:?} is lost"));
        Found { lost: lost.count() as u64, duplicates: self.duplicates, refused: 0 }
    }
}

fn append(appender: &Appender, n: u64, step: u64) -> rmqfast_store::Result<(Place, Vec<u8>)> {
    let message = message(n);
    let (topic, body) = (message.topic.clone(), message.body.clone());
    let done = appender.append(&Messages::new(vec![message]), Some(STORED_AT + (n * step) as i64), 0)?;
    let place = done.last.expect("one message");
    Ok(((topic, place.queue_id, place.queue_offset), body))
}

/// Appends, sometimes closes and opens again, and loses power; returns what was promised to be on the disk.
fn run(seed: u64, flush: Flush, left: &Path) -> Acknowledged {
    let (dir, mut chance) = (directory(), Chance(seed));
    let root = dir.path().to_path_buf();
    let sectors = Sectors::new(&root);
    let watch = disk::watch(&root, sectors.clone());
    let mut appender = Appender::open(&root, options(flush)).expect("opened");
    let (count, step) = (1 + chance.below(120), [1, 1000][chance.below(2) as usize]);
    let (mut promised, mut waiting) = (Vec::new(), Vec::new());
    for n in 0..count {
        waiting.push(append(&appender, n, step).expect("appended"));
        let event = chance.below(40);
        if event == 3 {
            drop(appender); // as a process that is killed
            appender = Appender::open(&root, options(flush)).expect("recovered");
        } else if event == 0 {
            appender.close().expect("closed");
            appender = Appender::open(&root, options(flush)).expect("opened");
        } else if event < 3 {
            appender.flush().expect("flushed");
        }
        if event < 4 || flush == Flush::Sync {
            promised.append(&mut waiting);
        }
    }
    sectors.cut(&mut chance, left);
    drop(watch);
    promised
}

fn seeds(default: u64) -> Vec<u64> {
    crate::figures::seeds("RMQFAST_SEEDS", default)
}

fn lose_power(fault: &'static str, flush: Flush) {
    let mut figures = Figures::new(fault);
    for seed in seeds(150) {
        figures.run(seed, || {
            let left = directory();
            let mut promised = run(seed, flush, left.path());
            fs::create_dir_all(left.path().join("commitlog")).expect("made");
            let appender = Appender::open(left.path(), options(flush)).expect("recovered");
            promised.extend((0..5).map(|n| append(&appender, 1000 + n, 1000).expect("appended")));
            appender.close().expect("closed");
            Stored::read(left.path()).compared(&promised)
        });
    }
    figures.tell();
}

#[test]
fn what_was_waited_for_survives_a_loss_of_power() {
    lose_power("loss of power, flush=sync", Flush::Sync);
}

#[test]
fn what_was_flushed_survives_a_loss_of_power() {
    lose_power("loss of power, flush=async", Flush::Async);
}

/// So many files are waited for by one wait for the file system.
#[test]
fn what_was_flushed_of_hundreds_of_queues_survives_a_loss_of_power() {
    lose_power_of_hundreds_of_queues(Sectors::new);
}

#[test]
fn files_are_waited_for_one_by_one_where_a_file_system_cannot_be() {
    lose_power_of_hundreds_of_queues(Sectors::without_sync_all);
}

fn lose_power_of_hundreds_of_queues(sectors: fn(&Path) -> Arc<Sectors>) {
    let dir = directory();
    let sectors = sectors(dir.path());
    let watch = disk::watch(dir.path(), sectors.clone());
    let appender = Appender::open(dir.path(), options(Flush::Async)).expect("opened");
    let put = |n: u64| {
        let one = OwnedMessage { queue_id: n as i64, topic: "many".into(), ..message(n) };
        let (topic, body) = (one.topic.clone(), one.body.clone());
        let done = appender.append(&Messages::new(vec![one]), Some(STORED_AT), 0).expect("appended");
        let place = done.last.expect("one message");
        ((topic, place.queue_id, place.queue_offset), body)
    };
    let promised: Acknowledged = (0..300).map(put).collect();
    appender.flush().expect("flushed");
    for seed in 0..5 {
        let left = directory();
        sectors.cut(&mut Chance(seed), left.path());
        Appender::open(left.path(), options(Flush::Async)).expect("recovered").close().expect("closed");
        let outcome = Stored::read(left.path()).compared(&promised);
        assert_eq!((outcome.lost, outcome.duplicates), (0, 0), "seed {seed}");
    }
    drop(watch);
}

#[test]
fn what_another_thread_appends_while_the_store_is_closed_is_kept_or_refused() {
    let mut figures = Figures::new("loss of power after a close beside appends");
    for seed in 0..60 {
        figures.run(seed, || {
            let (dir, left) = (directory(), directory());
            let sectors = Sectors::new(dir.path());
            let watch = disk::watch(dir.path(), sectors.clone());
            let flush = [Flush::Async, Flush::Sync][seed as usize % 2];
            let appender = Appender::open(dir.path(), options(flush)).expect("opened");
            let acknowledged = std::thread::scope(|scope| {
                let appending = scope.spawn(|| (0..).map_while(|n| append(&appender, n, 1).ok()).collect::<Vec<_>>());
                std::thread::sleep(std::time::Duration::from_micros(200 * (seed % 20)));
                appender.close().expect("closed");
                appending.join().expect("refused in the end")
            });
            sectors.cut(&mut Chance(seed), left.path());
            drop(watch);
            Stored::read(left.path()).compared(&acknowledged)
        });
    }
    figures.tell();
}

/// Appends, lets a part of the log become old, and loses power while it is removed. Returns what was promised, with the offsets
/// in the log, and where that begins once all that is old is gone; `None` where nothing went.
fn run_cleaning(seed: u64, left: &Path) -> Option<(Vec<(u64, Acknowledged)>, u64)> {
    let (dir, mut chance) = (directory(), Chance(seed));
    let sectors = Sectors::new(dir.path());
    let watch = disk::watch(dir.path(), sectors.clone());
    let retain = RetainOptions { clean_forcibly: false, ..RetainOptions::default() };
    let options = AppendOptions { retain: Some(retain), ..options(Flush::Async) };
    let appender = Appender::open(dir.path(), options).expect("opened");
    let (count, flushed) = (40 + chance.below(200), chance.below(2) == 0);
    let mut promised = Vec::new();
    for n in 0..count {
        let message = message(n);
        let (topic, body) = (message.topic.clone(), message.body.clone());
        let done = appender.append(&Messages::new(vec![message]), Some(STORED_AT + (n * 1000) as i64), 0);
        let place = done.expect("appended").last.expect("one message");
        let stored = ((topic, place.queue_id, place.queue_offset), body);
        promised.push((place.physical_offset as u64, vec![stored]));
        if flushed && n == count / 2 {
            appender.flush().expect("flushed");
        }
    }
    let old = chance.below(count / 8);
    for n in 0..old {
        let path = dir.path().join("commitlog").join(format!("{:020}", n * 4096));
        let aged = SystemTime::now() - Duration::from_secs(73 * 3600);
        let _ = fs::File::options().write(true).open(path).and_then(|file| file.set_modified(aged));
    }
    let now_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_millis() as i64;
    let min_offset = preview(dir.path(), &retain, now_ms).expect("planned").min_offset;
    sectors.calls_left.store(chance.below(80), Ordering::SeqCst);
    while appender.clean(None, true).is_ok_and(|run| run.log_files > 0) {}
    let has_begun = !dir.path().join("commitlog").join(format!("{:020}", 0)).exists();
    sectors.cut(&mut chance, left);
    drop(watch);
    // everything was flushed before the first file went; else nothing was promised, but that the store opens
    fs::create_dir_all(left.join("commitlog")).expect("made");
    Appender::open(left, options).and_then(|appender| appender.close()).expect("recovered");
    has_begun.then_some((promised, min_offset))
}

#[test]
fn what_retention_leaves_survives_a_loss_of_power() {
    let mut shortened = 0;
    let mut figures = Figures::new("loss of power while old files are removed");
    let seeds = seeds(150);
    for &seed in &seeds {
        figures.run(seed, || {
            let left = directory();
            let Some((promised, min_offset)) = run_cleaning(seed, left.path()) else { return Found::default() };
            shortened += 1;
            compare_cleaned(left.path(), &promised, min_offset)
        });
    }
    assert!(shortened >= seeds.len() / 5, "{shortened} runs removed something");
    figures.tell();
}

/// What stands behind `min_offset` must be there, and no offset of what is gone can be given again.
fn compare_cleaned(left: &Path, promised: &[(u64, Acknowledged)], min_offset: u64) -> Found {
    let kept = promised.iter().filter(|(at, _)| *at >= min_offset).flat_map(|(_, stored)| stored);
    let mut outcome = Stored::read(left).compared(kept);
    let bounds = MessageStore::open(left, &OpenOptions::default()).and_then(|store| store.topics()).expect("listed");
    let given_again = |((topic, queue_id, offset), _): &&(_, _)| bounds[topic][queue_id].1 <= *offset;
    outcome.duplicates += promised.iter().flat_map(|(_, stored)| stored).filter(given_again).count() as u64;
    outcome
}

/// Lets the n-th call fail, and with `for_good` all after it, too.
struct Failing {
    calls: Mutex<u64>,
    fails_at: u64,
    for_good: bool,
}

impl Watcher for Failing {
    fn before(&self, _: Call, _: &Path) -> io::Result<()> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls += 1;
        if *calls == self.fails_at || self.for_good && *calls > self.fails_at {
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(())
    }
    fn after(&self, _: Call, _: &Path) {}
}

/// Opens, appends and closes while the `n`-th call fails; returns what was acknowledged and whether a call failed at all.
fn run_failing(root: &Path, n: u64, for_good: bool) -> (Acknowledged, bool) {
    let failing = Arc::new(Failing { calls: Mutex::new(0), fails_at: n, for_good });
    let watch = disk::watch(root, failing.clone());
    let mut acknowledged = Vec::new();
    if let Ok(appender) = Appender::open(root, options(Flush::Sync)) {
        acknowledged.extend((0..40).filter_map(|n| append(&appender, n, 1).ok()));
        let _ = appender.close();
    }
    drop(watch);
    let calls = *failing.calls.lock().unwrap_or_else(PoisonError::into_inner);
    (acknowledged, calls >= n)
}

#[test]
fn whatever_call_fails_nothing_acknowledged_is_lost() {
    for (fault, for_good) in [("a call fails", false), ("a call fails, and all after it", true)] {
        let mut figures = Figures::new(fault);
        let mut has_failed = true;
        for n in 1.. {
            figures.run(n, || {
                let dir = directory();
                let acknowledged;
                (acknowledged, has_failed) = run_failing(dir.path(), n, for_good);
                let appender = Appender::open(dir.path(), options(Flush::Sync));
                appender.and_then(|appender| appender.close()).unwrap_or_else(|error| panic!("call {n}: {error}"));
                Stored::read(dir.path()).compared(&acknowledged)
            });
            if !has_failed {
                break;
            }
        }
        figures.tell();
    }
}

#[test]
fn after_a_failed_flush_nothing_is_acknowledged() {
    struct NoSync;
    impl Watcher for NoSync {
        fn before(&self, call: Call, _: &Path) -> io::Result<()> {
            if call == Call::Sync { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
        }
        fn after(&self, _: Call, _: &Path) {}
    }
    let dir = directory();
    let appender = Appender::open(dir.path(), options(Flush::Sync)).expect("opened");
    append(&appender, 0, 1).expect("appended");
    let watch = disk::watch(&dir.path().join("commitlog"), Arc::new(NoSync));
    append(&appender, 1, 1).expect_err("not on the disk");
    drop(watch);
    let error = append(&appender, 2, 1).expect_err("read-only").to_string();
    assert!(error.contains("after a failed write"), "{error}");
    appender.close().expect("given up");
    assert!(dir.path().join("abort").exists());
    let appender = Appender::open(dir.path(), options(Flush::Sync)).expect("recovered");
    append(&appender, 3, 1).expect("appended");
}
