//! What other processes do to the files of a store that is appended to: it never crashes, takes nothing into nothing, and says why.
use crate::directory;
use rmqfast_os::pages;
use rmqfast_store::file::name;
use rmqfast_store::filter::TagExpression;
use rmqfast_store::format::message::Message;
use rmqfast_store::store::append::{
    AppendOptions, Appender, Flush, Messages, OwnedMessage, PutMessageStatus, missing_end, repair,
};
use rmqfast_store::store::retain::RetainOptions;
use rmqfast_store::store::serve::{Every, Fault, Places};
use rmqfast_store::store::{GetLimits, MessageStore, OpenOptions};
use rmqfast_store::{Error, Result};
use rmqfast_waiting::until;
use std::fs::{self, OpenOptions as File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

const FILE: u64 = 256 << 10;
const TOPIC: &str = "orders";

fn options() -> AppendOptions {
    AppendOptions {
        file_size: FILE,
        queue_file_size: 20_000,
        index_slots: 16,
        index_entries: 4_000,
        retain: Some(RetainOptions { clean_forcibly: false, warning_percent: 100, ..RetainOptions::default() }),
        ..AppendOptions::default()
    }
}

fn message(n: u64, len: usize) -> OwnedMessage {
    let mut body = n.to_be_bytes().to_vec();
    body.resize(len.max(8), b'b');
    OwnedMessage { topic: TOPIC.into(), body, keys: Some(format!("k{n}")), ..OwnedMessage::default() }
}

/// A store with so many messages, of which a clean start would find all.
struct AppendResult {
    dir: tempfile::TempDir,
    store: Appender,
    acknowledged: Vec<u64>,
}

impl AppendResult {
    fn new(options: AppendOptions, messages: u64) -> Self {
        let dir = directory();
        let store = Appender::open(&dir.path().join("store"), options).expect("opened");
        let mut appended = Self { dir, store, acknowledged: Vec::new() };
        (0..messages).for_each(|_| appended.put().expect("appended"));
        appended
    }

    fn put(&mut self) -> Result<()> {
        let n = self.acknowledged.len() as u64;
        self.store.append(&Messages::new(vec![message(n, 300)]), None, 0)?;
        self.acknowledged.push(n);
        Ok(())
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn log(&self) -> PathBuf {
        self.root().join("commitlog")
    }

    fn end(&self) -> u64 {
        self.store.live().log_bounds().1
    }

    /// The file of the log that is written to.
    fn current(&self) -> PathBuf {
        self.log().join(name::of_offset(self.end() / FILE * FILE))
    }

    /// Appends until that is refused, which must be soon: returns how often it was not, and why it was.
    fn refusal(&mut self) -> (usize, Error) {
        let before = self.acknowledged.len();
        let mut error = None;
        until("a refusal", || {
            error = self.put().err();
            error.is_some()
        });
        (self.acknowledged.len() - before, error.expect("refused"))
    }

    /// Numbers of the messages that are found once the store was closed and opened anew.
    fn found_anew(self, options: AppendOptions) -> (Vec<u64>, tempfile::TempDir) {
        let root = self.root();
        self.store.close().expect("closed");
        drop(self.store);
        // what was flushed and is gone is given up by name alone
        if let Some(missing) = missing_end(&root).expect("read") {
            let error = Appender::open(&root, options).expect_err("refused").to_string();
            assert!(error.contains("nothing was changed"), "{error}");
            repair(&root, options, Some(missing.log_end), &mut |_, _| Ok(())).expect("repaired");
        }
        let store = Appender::open(&root, options).expect("opened anew");
        store.append(&Messages::new(vec![message(u64::MAX, 10)]), None, 0).expect("goes on");
        store.close().expect("closed");
        let mut numbers_left = numbers(&root);
        assert_eq!(numbers_left.pop(), Some(u64::MAX));
        (numbers_left, self.dir)
    }
}

/// Numbers of the messages of the queue, as a reader finds them.
fn numbers(root: &Path) -> Vec<u64> {
    let store = MessageStore::open(root, &OpenOptions::default()).expect("opened");
    let (mut numbers, mut offset) = (Vec::new(), 0);
    loop {
        let got = store.get(TOPIC, 0, offset, 32, &TagExpression::all()).expect("read");
        assert!(got.damage.is_empty(), "{:?}", got.damage);
        offset = got.next_begin_offset;
        let messages = got.records.iter().map(|record| Message::decode(record).expect("sound"));
        numbers.extend(messages.map(|message| u64::from_be_bytes(*message.body().first_chunk().expect("a number"))));
        if offset >= got.max_offset {
            return numbers;
        }
    }
}

fn cut(path: &Path, len: u64) {
    File::new().write(true).open(path).and_then(|file| file.set_len(len)).expect("cut");
}

fn zero(path: &Path) {
    let len = path.metadata().expect("there").len();
    File::new().write(true).open(path).and_then(|f| f.write_all_at(&vec![0; len as usize], 0)).expect("zeroed");
}

#[track_caller]
fn assert_names(error: &Error, path: &Path) {
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()) && text.contains("open it again"), "{text}");
    assert_eq!(PutMessageStatus::of(error), PutMessageStatus::ServiceNotAvailable);
}

#[test]
fn a_log_that_is_cut_off_takes_not_one_message_more() {
    for flush in [Flush::Async, Flush::Sync] {
        let options = AppendOptions { flush, ..options() };
        // to nothing, to whole pages, into a page, to where the last message ends
        for left in [Some(0), Some(2 * pages::size() as u64), Some(2 * pages::size() as u64 + 77), None] {
            let mut store = AppendResult::new(options, 100);
            let (path, end) = (store.current(), store.end());
            cut(&path, left.unwrap_or(end));
            let (taken, error) = store.refusal();
            assert_eq!(taken, 0, "{flush:?} {left:?}");
            assert_names(&error, &path);
            assert_names(&store.put().expect_err("refused again"), &path);
            let acknowledged = store.acknowledged.clone();
            let (mut stored, _dir) = store.found_anew(options);
            // one that was refused may be there
            stored.retain(|n| acknowledged.contains(n));
            assert!(acknowledged.starts_with(&stored), "{flush:?} {left:?}");
            assert!(left.is_some() || stored == acknowledged, "{flush:?}: nothing was lost");
        }
    }
}

#[test]
fn a_log_that_is_zeroed_takes_not_one_message_more() {
    for flush in [Flush::Async, Flush::Sync] {
        let options = AppendOptions { flush, ..options() };
        let mut store = AppendResult::new(options, 100);
        let path = store.current();
        zero(&path);
        let (taken, error) = store.refusal();
        assert_eq!(taken, 0);
        assert_names(&error, &path);
        let (stored, _dir) = store.found_anew(options);
        assert_eq!(stored, Vec::<u64>::new());
    }
}

#[test]
fn files_that_are_removed_come_back_with_what_was_taken_meanwhile() {
    for flush in [Flush::Async, Flush::Sync] {
        let options = AppendOptions { flush, ..options() };
        for what in ["current", "full", "queue", "index", "all"] {
            let mut store = AppendResult::new(options, 1_500);
            let path = match what {
                "current" => store.current(),
                "full" => store.log().join(name::of_offset(0)),
                "queue" => store.root().join("consumequeue").join(TOPIC).join("0").join(name::of_offset(20_000)),
                "index" => {
                    fs::read_dir(store.root().join("index")).expect("read").flatten().next().expect("one").path()
                }
                _ => store.log(),
            };
            assert!(path.exists(), "{what}");
            if what == "all" {
                for name in ["commitlog", "consumequeue"] {
                    let gone = store.dir.path().join(name);
                    // at once: files that are written back meanwhile would be in the way of the removal
                    fs::rename(store.root().join(name), &gone).expect("moved away");
                    fs::remove_dir_all(gone).expect("removed");
                }
            } else {
                fs::remove_file(&path).expect("removed");
            }
            let (_, error) = store.refusal();
            if what != "all" {
                assert_names(&error, &path);
                until("the file is there again", || path.exists());
            }
            until("all is written back", || {
                let mut lines = store.store.take_harm_lines();
                lines.retain(|line| !line.contains("written back"));
                store.log().join(name::of_offset(FILE)).exists()
                    && store.current().exists()
                    && !store.root().join("rescue.tmp").exists()
                    && lines.is_empty()
            });
            let acknowledged = store.acknowledged.clone();
            let (stored, _dir) = store.found_anew(options);
            assert_eq!(stored, acknowledged, "{flush:?} {what}");
        }
    }
}

#[test]
fn a_queue_that_is_cut_off_or_zeroed_is_listed_anew_from_the_log() {
    for (flush, is_cut) in [(Flush::Async, true), (Flush::Sync, true), (Flush::Async, false)] {
        let options = AppendOptions { flush, ..options() };
        let mut store = AppendResult::new(options, 100);
        let path = store.root().join("consumequeue").join(TOPIC).join("0").join(name::of_offset(0));
        if is_cut {
            cut(&path, 100)
        } else {
            zero(&path)
        }
        if is_cut {
            assert_names(&store.refusal().1, &path);
        } else {
            store.put().expect("the log is whole");
        }
        let acknowledged = store.acknowledged.clone();
        let (stored, _dir) = store.found_anew(options);
        assert_eq!(stored, acknowledged, "{flush:?} {is_cut}");
    }
}

#[test]
fn a_file_in_place_of_another_is_told() {
    let mut store = AppendResult::new(options(), 100);
    let path = store.current();
    fs::copy(&path, store.dir.path().join("copy")).expect("copied");
    fs::rename(store.dir.path().join("copy"), &path).expect("put in its place");
    let inode = path.metadata().expect("there").ino();
    let (_, error) = store.refusal();
    assert_names(&error, &path);
    assert!(error.to_string().contains("another file has taken its name"), "{error}");
    assert_eq!(path.metadata().expect("there").ino(), inode, "it stays");
}

#[test]
fn what_retention_removes_is_no_harm() {
    let mut store = AppendResult::new(options(), 3_000);
    let year = 365 * 24 * 3_600_000;
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis() as i64;
    for _ in 0..3 {
        store.store.clean(Some(now + year), true).expect("cleaned");
        (0..500).for_each(|_| store.put().expect("appended"));
    }
    assert!(!store.log().join(name::of_offset(0)).exists());
    // once it has looked, which it does in the order of what happened
    fs::remove_file(store.current()).expect("removed");
    let current = store.current();
    assert_names(&store.refusal().1, &current);
}

#[test]
fn who_reads_gets_nothing_for_what_is_lost() {
    // in the middle of a message, wherever that is in its page
    for cut_one in 40..60 {
        let store = AppendResult::new(options(), 100);
        let live = store.store.live();
        let queue = live.queue(TOPIC, 0).expect("there");
        let mut out = Places::default();
        let mut pull = || {
            out.clear();
            let limits = GetLimits::of_count(200);
            let messages = live.get_message(&queue, 0, 200, &Every, limits, &mut out).expect("read").messages;
            assert!(out.are_complete(), "{cut_one}");
            (messages, out.skipped().len())
        };
        assert_eq!(pull(), (100, 0));
        let unit = queue.unit(cut_one).expect("read").expect("there");
        cut(&store.current(), unit.physical_offset as u64 + 120);
        assert_eq!(pull(), (cut_one as usize, 100 - cut_one as usize));
        assert!(live.record(unit.physical_offset as u64).expect("read").is_none());
        assert!(live.record(0).expect("read").is_some());
    }
}

#[test]
fn a_body_without_its_crc_is_given_unless_that_is_looked_at() {
    let store = AppendResult::new(options(), 20);
    let live = store.store.live();
    let queue = live.queue(TOPIC, 0).expect("there");
    let pull = |out: &mut Places| {
        out.clear();
        let messages = live.get_message(&queue, 0, 32, &Every, GetLimits::of_count(32), out).expect("read").messages;
        let faults = out.skipped().iter().map(|message| (message.queue_offset, message.fault));
        (messages, faults.collect::<Vec<_>>())
    };
    let harm = |offset| {
        let unit = queue.unit(offset).expect("read").expect("there");
        let file = File::new().write(true).open(store.current()).expect("opened");
        file.write_all_at(b"x", unit.physical_offset as u64 + 100).expect("written");
    };
    let mut out = Places::default();
    harm(7);
    assert_eq!(pull(&mut out), (20, vec![]));
    live.check_bodies(true);
    for _ in 0..2 {
        assert_eq!(pull(&mut out), (19, vec![(7, Fault::Body)]));
    }
    harm(9);
    assert_eq!(pull(&mut out), (19, vec![(7, Fault::Body)]), "what was sound once is not looked at again");
    live.check_bodies(false);
    assert_eq!(pull(&mut out), (20, vec![]));
}
