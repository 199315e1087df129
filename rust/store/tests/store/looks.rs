//! What can be listed and not looked at is never taken for absent: whatever look fails, with whatever error, an answer is the right one or
//! an error that names it. Links that lead nowhere are damage where a store is read, and a refusal where it is opened for appending.
use crate::directory;
use rmqfast_store::export::export;
use rmqfast_store::file::Io;
use rmqfast_store::file::disk::{self, Call, Look, Watcher};
use rmqfast_store::filter::TagExpression;
use rmqfast_store::scan::{Plan, RowSource, ScanRequest, Way};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage, repair};
use rmqfast_store::store::commit_log::DamageLog;
use rmqfast_store::store::query::KeyQuery;
use rmqfast_store::store::retain::{RetainOptions, preview};
use rmqfast_store::store::time_search::TimeRule;
use rmqfast_store::store::{LogFollow, MessageStore, OpenOptions, newest_copy};
use rmqfast_store::{Error, Result};
use std::fmt::Write;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

/// EACCES, ELOOP, ESTALE, EIO, ENOMEM.
const ERRORS: [i32; 5] = [13, 40, 116, 5, 12];
const COUNT: usize = 60;

fn sizes() -> AppendOptions {
    AppendOptions { file_size: 4096, queue_file_size: 200, index_slots: 16, index_entries: 40, ..Default::default() }
}

/// A store of sixty messages in several files of each kind, with a configuration; `abort` where it was not closed.
pub fn store_below(root: &Path, is_closed: bool) {
    let message = |n: usize| OwnedMessage {
        topic: ["orders", "clicks"][n % 2].into(),
        body: vec![b'x'; 50 + n],
        keys: Some(format!("k{n}")),
        ..OwnedMessage::default()
    };
    let appender = Appender::open(root, sizes()).expect("new");
    for n in 0..COUNT {
        appender.append(&Messages::new(vec![message(n)]), Some(1000 + n as i64), 0).expect("appended");
    }
    appender.close().expect("closed");
    fs::create_dir(root.join("config")).expect("made");
    fs::write(root.join("config/topics.json"), r#"{"topicConfigTable":{"orders":{"topicName":"orders"}}}"#)
        .expect("saved");
    if !is_closed {
        fs::write(root.join("abort"), "").expect("made");
    }
}

/// Fails one look.
#[derive(Default)]
struct Failing {
    left: Mutex<u64>,
    error: i32,
    failed: Mutex<Option<(Look, PathBuf)>>,
}

impl Watcher for Failing {
    fn before_look(&self, look: Look, path: &Path) -> io::Result<()> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        if *left > 0 {
            return Ok(());
        }
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some((look, path.to_path_buf()));
        Err(io::Error::from_raw_os_error(self.error))
    }
    fn before(&self, _: Call, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn after(&self, _: Call, _: &Path) {}
}

fn open(root: &Path) -> Result<MessageStore> {
    MessageStore::open(root, &OpenOptions::default())
}

/// Queue offsets of a scan, and its damage, in words.
fn scanned(root: &Path, topic: Option<&str>, way: Option<Way>) -> Result<String> {
    let store = open(root)?;
    let request = ScanRequest { topic: topic.map(str::to_owned), ..ScanRequest::default() };
    let plan = Plan::new(&store, &request, way)?;
    let mut source = RowSource::new(plan.sources.clone(), Arc::new(request), plan.pieces);
    let mut text = String::new();
    while source.advance(&mut || Ok(()))? {
        for message in source.rows().iter().filter_map(|row| row.message(source.bytes())) {
            let topic = String::from_utf8_lossy(message.topic());
            let _ = write!(text, "{topic} {} ", message.queue_offset());
        }
    }
    let _ = write!(text, "{:?}", source.damage().entries());
    Ok(text)
}

fn followed(root: &Path) -> Result<String> {
    let mut follow = LogFollow::new(&open(root)?)?;
    let (mut damage, mut count) = (DamageLog::default(), 0);
    while follow.advance(&mut damage)? {
        count += follow.block().records.len();
    }
    Ok(format!("{count} {:?}", damage.entries()))
}

fn queried(root: &Path) -> Result<String> {
    let topics = ["orders".to_owned()];
    let query = KeyQuery { topics: &topics, key: "k4", unique: false, max_messages: 9, begin: 0, end: i64::MAX };
    let found = open(root)?.query(&query, &mut || Ok(()))?;
    Ok(format!("{:?} {:?}", found.records.keys(), found.damage.entries()))
}

fn exported(root: &Path) -> Result<String> {
    let out = root.with_extension("out");
    let report = export(&open(root)?, &ScanRequest::default(), &out, sizes(), &mut |_, _| Ok(()));
    let _ = fs::remove_dir_all(&out);
    report.map(|report| format!("{} {:?}", report.rows, report.damage.entries()))
}

pub type Reading = (&'static str, fn(&Path) -> Result<String>);

pub const READINGS: [Reading; 13] = [
    ("scan of all", |root| scanned(root, None, None)),
    ("scan of a topic", |root| scanned(root, Some("orders"), None)),
    ("scan by queues", |root| scanned(root, Some("orders"), Some(Way::Queue))),
    ("follow", followed),
    ("query", queried),
    ("export", exported),
    ("topics", |root| open(root)?.topics().map(|topics| format!("{topics:?}"))),
    ("info", |root| open(root)?.info().map(|info| format!("{info:?}"))),
    ("get", |root| {
        open(root)?.get("orders", 0, 0, 99, &TagExpression::parse("*").expect("a tag")).map(|got| format!("{got:?}"))
    }),
    ("offset by time", |root| {
        open(root)?.offset_for_time("orders", 0, 1030, TimeRule::V4).map(|offset| offset.to_string())
    }),
    ("verify", |root| open(root)?.verify(true, &mut |_, _| Ok(())).map(|report| format!("{report:?}"))),
    ("preview", |root| preview(root, &RetainOptions::default(), i64::MAX / 4).map(|plan| format!("{plan:?}"))),
    ("newest copy", |root| newest_copy(&root.join("commitlog")).map(|path| path.display().to_string())),
];

/// Lets each look of `reading` fail, one after the other, with each of the errors in turn.
fn fail_each_look((name, reading): Reading, root: &Path, first: usize) -> u64 {
    let sound = reading(root).expect("nothing fails");
    for n in 1.. {
        let error = ERRORS[(n as usize + first) % ERRORS.len()];
        let failing = Arc::new(Failing { left: Mutex::new(n), error, ..Failing::default() });
        let watch = disk::watch(root, failing.clone());
        let got = reading(root);
        drop(watch);
        let failed = failing.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(failed) = failed else { return n - 1 };
        let words = format!("os error {error}");
        match got {
            Ok(text) => assert!(text == sound || text.contains(&words), "{name}: {failed:?}, {words}: {text}\n{sound}"),
            Err(Error::Io { source, path }) => {
                assert_eq!(source.raw_os_error(), Some(error), "{name}: {failed:?}");
                assert!(path.starts_with(root), "{name}: {failed:?}: {}", path.display());
            }
            Err(other) => assert!(other.to_string().contains(&words), "{name}: {failed:?}: {other}"),
        }
    }
    0
}

#[test]
fn whatever_look_fails_a_reader_gives_the_right_answer_or_the_error() {
    for is_closed in [true, false] {
        let dir = directory();
        let root = dir.path().join("store");
        store_below(&root, is_closed);
        for reading in READINGS {
            let looks: u64 = (0..ERRORS.len()).map(|first| fail_each_look(reading, &root, first)).sum();
            assert!(looks >= 5, "{}: {looks}", reading.0);
        }
    }
}

#[test]
fn whatever_look_fails_an_owner_loses_nothing() {
    type Opening = (&'static str, fn(&Path) -> Result<()>);
    let opened: [Opening; 2] = [
        ("open", |root| Appender::open(root, sizes())?.close()),
        ("repair", |root| repair(root, sizes(), None, &mut |_, _| Ok(())).map(drop)),
    ];
    let sound = directory();
    store_below(&sound.path().join("store"), true);
    let expected = scanned(&sound.path().join("store"), None, None).expect("read");
    for (name, opened) in opened {
        for is_closed in [true, false] {
            for n in 1.. {
                let dir = directory();
                let root = dir.path().join("store");
                store_below(&root, is_closed);
                let error = ERRORS[n as usize % ERRORS.len()];
                let failing = Arc::new(Failing { left: Mutex::new(n), error, ..Failing::default() });
                let watch = disk::watch(&root, failing.clone());
                let result = opened(&root);
                drop(watch);
                let failed = failing.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let Some(failed) = failed else { break };
                if let Err(told) = result {
                    assert!(told.to_string().contains(&format!("os error {error}")), "{name}: {failed:?}: {told}");
                }
                // the next one goes on where it was left
                Appender::open(&root, sizes()).and_then(|appender| appender.close()).expect("recovered");
                assert_eq!(scanned(&root, None, None).expect("read"), expected, "{name} {is_closed} {failed:?}");
            }
        }
    }
}

fn linked_nowhere(path: &Path) {
    fs::remove_file(path).expect("removed");
    symlink("/nowhere/archive", path).expect("linked");
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory).expect("read").map(|entry| entry.expect("read").path()).collect();
    files.sort_unstable();
    files
}

/// A sound store whose file `pick` of a directory leads nowhere.
fn with_dead_link(directory_name: &str, pick: fn(&[PathBuf]) -> usize) -> (TempDir, PathBuf) {
    let dir = directory();
    let root = dir.path().join("store");
    store_below(&root, true);
    let files = files(&root.join(directory_name));
    linked_nowhere(&files[pick(&files)]);
    (dir, root)
}

#[test]
fn a_file_of_the_log_that_leads_nowhere_is_damage_of_its_length() {
    for pick in [|_: &[PathBuf]| 0, |files: &[PathBuf]| files.len() / 2, |files: &[PathBuf]| files.len() - 1] {
        let (_dir, root) = with_dead_link("commitlog", pick);
        for io in [Io::Pread, Io::Mmap] {
            let store = MessageStore::open(&root, &OpenOptions { io, ..OpenOptions::default() }).expect("opened");
            let report = store.verify(true, &mut |_, _| Ok(())).expect("read");
            let [damage, ..] = report.damage.entries() else { panic!("no damage") };
            assert!(damage.reason.contains("/nowhere/archive") && damage.length == 4096, "{damage}");
            assert!(damage.file.is_symlink(), "{damage}");
        }
        for text in [
            scanned(&root, None, None),
            scanned(&root, Some("orders"), None),
            scanned(&root, Some("orders"), Some(Way::Queue)),
            followed(&root),
            exported(&root),
        ] {
            assert!(text.expect("read").contains("/nowhere/archive"));
        }
    }
}

#[test]
fn a_log_whose_only_file_leads_nowhere_is_not_an_empty_log() {
    let dir = directory();
    let root = dir.path().join("store");
    store_below(&root, true);
    for file in &files(&root.join("commitlog"))[1..] {
        fs::remove_file(file).expect("removed");
    }
    linked_nowhere(&files(&root.join("commitlog"))[0]);
    assert!(scanned(&root, None, None).expect("read").contains("/nowhere/archive"));
    assert!(!open(&root).expect("opened").verify(false, &mut |_, _| Ok(())).expect("read").is_ok());
}

#[test]
fn a_file_of_a_queue_or_the_index_that_leads_nowhere_costs_no_message() {
    let (_dir, sound) = with_dead_link("index", |_| 0);
    let (rows, found) = (scanned(&sound, Some("orders"), None).expect("read"), queried(&sound).expect("read"));
    assert!(rows.ends_with("[]") && rows.matches("orders").count() == COUNT / 2 && found.ends_with("[]"), "{rows}");
    for (directory_name, pick) in [
        ("consumequeue/orders/0", (|_: &[PathBuf]| 0) as fn(&[PathBuf]) -> usize),
        ("consumequeue/orders/0", |files| files.len() / 2),
        ("consumequeue/orders/0", |files| files.len() - 1),
        ("index", |files| files.len() - 1),
    ] {
        let (_dir, root) = with_dead_link(directory_name, pick);
        assert_eq!(scanned(&root, Some("orders"), None).expect("read"), rows, "{directory_name}");
        assert_eq!(queried(&root).expect("read"), found, "{directory_name}");
        let report = open(&root).expect("opened").verify(true, &mut |_, _| Ok(())).expect("read");
        let told = report.damage.entries().iter().any(|damage| damage.reason.contains("/nowhere/archive"));
        assert!(told, "{directory_name}: {report:?}");
    }
}

#[test]
fn nothing_is_written_to_a_store_with_a_link_that_leads_nowhere() {
    for directory_name in ["commitlog", "consumequeue/orders/0", "index", "config"] {
        for is_closed in [true, false] {
            let (_dir, root) = with_dead_link(directory_name, |_| 0);
            if !is_closed {
                fs::write(root.join("abort"), "").expect("made");
            }
            let before = snapshot(&root);
            for refused in [
                Appender::open(&root, sizes()).map(drop),
                repair(&root, sizes(), None, &mut |_, _| Ok(())).map(drop),
                rmqfast_store::store::append::cut(&root, 4096, sizes(), &mut |_, _| Ok(())).map(drop),
            ] {
                let error = refused.expect_err(directory_name).to_string();
                assert!(error.contains("/nowhere/archive"), "{directory_name}: {error}");
            }
            assert_eq!(snapshot(&root), before, "{directory_name}");
        }
    }
}

/// Names and contents, without the lock and what a refused owner leaves of a running one.
fn snapshot(root: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for path in files(&directory) {
            if path.is_dir() {
                directories.push(path);
            } else if path.file_name().is_some_and(|name| name != "lock") {
                found.push((path.clone(), fs::read(&path).ok()));
            }
        }
    }
    found
}

#[test]
fn a_directory_that_leads_nowhere_is_an_error() {
    for name in ["commitlog", "consumequeue", "consumequeue/orders", "consumequeue/orders/0", "index"] {
        let dir = directory();
        let root = dir.path().join("store");
        store_below(&root, true);
        fs::remove_dir_all(root.join(name)).expect("removed");
        symlink("/nowhere/archive", root.join(name)).expect("linked");
        let read = open(&root).and_then(|store| store.verify(false, &mut |_, _| Ok(())));
        let error = read.expect_err(name).to_string();
        assert!(error.contains("/nowhere/archive"), "{name}: {error}");
    }
}
