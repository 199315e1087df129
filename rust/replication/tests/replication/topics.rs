//! A follower that keeps some topics, beside a slow reader of the same log.
use crate::chance::Chance;
use crate::peers::{FILE, Gate, Log, Peer, files, follow, options};
use rmqfast_replication::mark::MarkKeeper;
use rmqfast_replication::{End, Follow, Follower, Mark};
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::store::append::{self, AppendOptions, Appender};
use rmqfast_store::store::{MessageStore, OpenOptions};
use rmqfast_waiting::until;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tempfile::TempDir;

/// The magic of a blank record.
const BLANK: u32 = 0xCBD4_3194;

struct Copy {
    dir: TempDir,
    options: AppendOptions,
    appender: Arc<Appender>,
}

impl Copy {
    fn new() -> Self {
        Self::with(options())
    }

    /// One that begins with the master's log; its own begins with the second file.
    fn with(options: AppendOptions) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let options = AppendOptions { replica_from: Some(options.file_size), ..options };
        let appender = Appender::open(dir.path(), options).expect("new").into();
        Mark::first(0, options.file_size).save(dir.path()).expect("saved");
        Self { dir, options, appender }
    }

    fn mark(&self) -> Mark {
        Mark::load(self.dir.path()).expect("sound").expect("there")
    }

    fn follow(&self, peer: &Peer, topics: &[&str]) -> Result<Follower, End> {
        self.follow_from(peer, topics, self.mark().compare_from)
    }

    fn follow_from(&self, peer: &Peer, topics: &[&str], from: u64) -> Result<Follower, End> {
        let topics = topics.iter().map(|&name| name.to_owned()).collect();
        let follow = Follow { topics, ..follow(&peer.address, from) };
        Follower::start(self.appender.clone(), self.dir.path(), follow)
    }

    /// Takes all of a log, in frames of `size` bytes.
    fn take(&self, log: &[u8], topics: &[&str], size: usize) {
        let follower = self.follow(&Peer::serving(log, size), topics).expect("started");
        until("all is listed", || {
            assert!(follower.wait(Duration::ZERO).is_none(), "{:?}", follower.wait(Duration::ZERO));
            follower.progress().listed_to == log.len() as u64 && follower.progress().is_compared
        });
        follower.stop();
    }

    /// How following ends by itself.
    fn ended(&self, log: &[u8], topics: &[&str]) -> Arc<End> {
        let follower = self.follow(&Peer::serving(log, 3000), topics).expect("started");
        let end = follower.wait(Duration::from_secs(60)).expect("an end");
        follower.stop();
        end
    }

    fn log(&self) -> Vec<u8> {
        let mut bytes = files(&self.dir.path().join("commitlog"));
        bytes.truncate((self.appender.log_end().expect("open") - self.options.file_size) as usize);
        bytes
    }

    /// Opens it again as after a kill: the disk has this mark, and of what came behind it what ends at `end`.
    fn killed(&mut self, mark: Mark, end: u64) {
        self.close();
        append::cut(self.dir.path(), end, self.options, &mut |_, _| Ok(())).expect("cut");
        mark.save(self.dir.path()).expect("saved");
        self.appender = Appender::open(self.dir.path(), self.options).expect("opened").into();
    }

    fn close(&self) {
        self.appender.close().expect("closed");
    }

    fn messages(&self) -> i64 {
        self.appender.live().queues().iter().map(|queue| queue.bounds().1).sum()
    }
}

/// The records of a log of addresses of IPv4: where each begins, and its topic; none for a blank.
fn records(log: &[u8]) -> Vec<(usize, Option<String>)> {
    let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four")) as usize;
    let (mut at, mut found) = (0, Vec::new());
    while at < log.len() {
        let topic = at + 88 + word(at + 84);
        let is_blank = word(at + 4) == BLANK as usize;
        let name = || String::from_utf8(log[topic + 1..][..log[topic] as usize].to_vec()).expect("text");
        found.push((at, (!is_blank).then(name)));
        at += word(at);
    }
    found
}

/// What a copy of some topics has, made slowly: record by record.
fn kept(log: &[u8], topics: &[&str], file_size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, _) in records(log).into_iter().filter(|(_, topic)| topic.as_deref().is_some_and(|t| topics.contains(&t))) {
        let size = u32::from_be_bytes(log[at..at + 4].try_into().expect("four")) as usize;
        let room = file_size as usize - out.len() % file_size as usize;
        if size + 8 > room {
            let end = out.len() + room;
            out.extend((room as u32).to_be_bytes());
            out.extend(BLANK.to_be_bytes());
            out.resize(end, 0);
        }
        let mut record = log[at..at + size].to_vec();
        record[28..36].copy_from_slice(&(file_size + out.len() as u64).to_be_bytes());
        out.extend(record);
    }
    out
}

#[test]
fn the_records_of_some_topics_are_a_log_of_their_own_that_is_listed() {
    let log = Log::new(800, 900);
    for (topics, size) in [(&["T1"][..], 7), (&["T0", "T2"], 1000), (&["T0", "T1", "T2", "none"], 1 << 20)] {
        let copy = Copy::new();
        copy.take(&log.bytes, topics, size);
        let expected = kept(&log.bytes, topics, FILE);
        assert!(copy.log() == expected, "{topics:?}");
        let all = records(&log.bytes).into_iter().filter_map(|(_, topic)| topic);
        let count = all.filter(|topic| topics.contains(&topic.as_str())).count();
        assert_eq!(copy.messages(), count as i64, "{topics:?}");
        let mark = copy.mark();
        assert_eq!((mark.position, mark.copy_end), (log.bytes.len() as u64, FILE + expected.len() as u64));
        copy.close();
        let store = MessageStore::open(copy.dir.path(), &OpenOptions::default()).expect("opened");
        assert!(store.verify(true, &mut |_, _| Ok(())).expect("read").damage.is_empty());
    }
}

#[test]
fn killed_at_any_moment_it_neither_loses_nor_doubles_a_message() {
    for seed in 0..30 {
        let mut chance = Chance(seed);
        let log = Log::new(200 + chance.index(300), 100 + chance.index(2000));
        let topics = [&["T0"][..], &["T1", "T2"], &["T0", "T1", "T2"]][chance.index(3)];
        let (expected, starts) = (kept(&log.bytes, topics, FILE), records(&log.bytes));
        let mut copy = Copy::new();
        let (mut marks, mut reached) = (vec![copy.mark()], 0);
        for _ in 0..4 {
            // each time to a place behind the last one that was reached
            let behind = starts.partition_point(|(at, _)| *at < reached);
            reached = starts.get(behind + chance.index(starts.len() - behind + 1)).map_or(log.bytes.len(), |s| s.0);
            copy.take(&log.bytes[..reached], topics, 1 + chance.index(9000));
            assert!(expected.starts_with(&copy.log()), "seed {seed}");
            let (mark, end) = (marks[chance.index(marks.len())], copy.appender.log_end().expect("open"));
            marks.push(copy.mark());
            if chance.below(2) == 0 {
                copy.killed(mark, mark.copy_end + chance.below(end - mark.copy_end + 1));
                // what is lost is lost for the later marks, too
                marks.retain(|other| other.position <= mark.position);
            }
        }
        copy.take(&log.bytes, topics, 5000);
        assert!(copy.log() == expected, "seed {seed}");
    }
}

#[test]
fn a_copy_that_ends_with_a_blank_is_compared_though_nothing_of_its_topics_comes() {
    let log = Log::new(400, 900);
    let expected = kept(&log.bytes, &["T1"], FILE);
    let copy = Copy::new();
    // the blank is there, and what comes behind it is not
    let file = &expected[..FILE as usize];
    let last = records(file).iter().rev().find(|(_, topic)| topic.is_some()).expect("a record").0;
    copy.appender.copy_log(FILE, file, Some(FILE + last as u64)).expect("copied");
    let next = records(&log.bytes).into_iter().filter(|(_, topic)| topic.as_deref() == Some("T1"));
    let next = next.map(|(at, _)| at).nth(records(file).len() - 1).expect("more of it");
    let follower = copy.follow(&Peer::serving(&log.bytes[..next], 700), &["T1"]).expect("started");
    until("all is compared", || follower.progress().is_compared && follower.progress().position == next as u64);
    follower.stop();
    assert!(copy.log() == file);
    copy.take(&log.bytes, &["T1"], 700);
    assert!(copy.log() == expected);
}

#[test]
fn where_nothing_of_the_topics_comes_the_mark_goes_on_all_the_same() {
    let log = Log::new(300, 900);
    let copy = Copy::new();
    copy.take(&log.bytes, &["none"], 4000);
    let mark = copy.mark();
    assert_eq!((mark.position, mark.copy_end), (log.bytes.len() as u64, FILE));
    assert!(mark.position - mark.compare_from >= 64 << 10, "{mark:?}");
    // what is known of the log is not read again
    let peer = Peer::serving(&log.bytes, 4000);
    let follower = copy.follow(&peer, &["none"]).expect("started");
    assert_eq!(peer.heard(), mark.compare_from as i64);
    until("it is compared", || follower.progress().is_compared);
    follower.stop();
    assert_eq!(copy.mark(), mark);
}

#[test]
fn a_log_that_went_on_with_other_messages_is_found_and_never_mixed() {
    let log = Log::new(300, 900);
    let copy = Copy::new();
    copy.take(&log.bytes, &["T1"], 4000);
    let (mark, copied) = (copy.mark(), copy.log());
    // before the mark, of whatever topic
    for at in [mark.compare_from as usize + 1, log.bytes.len() - 1] {
        let mut other = log.bytes.clone();
        other[at] ^= 1;
        let end = copy.ended(&other, &["T1"]);
        assert!(matches!(*end, End::Diverged { at } if at == mark.compare_from), "{end}");
        assert!(copy.log() == copied && copy.mark() == mark);
    }
    // behind it, where the copy was killed before it had the next one
    Mark::first(0, FILE).save(copy.dir.path()).expect("saved");
    let other = Log::of_sizes((0..300).map(|n| if n == 199 { 5 } else { 1 + n * 37 % 900 }));
    let mut messages = records(&other.bytes).into_iter().filter(|(_, topic)| topic.is_some());
    let (expected, topic) = messages.nth(199).expect("one");
    assert_eq!(topic.as_deref(), Some("T1"));
    let end = copy.ended(&other.bytes, &["T1"]);
    assert!(matches!(*end, End::Diverged { at } if at == expected as u64), "{end}, {expected}");
    assert!(copy.log() == copied);
    assert!(copy.mark().position <= expected as u64);
}

#[test]
fn records_larger_than_the_buffer_are_kept_and_one_above_the_limit_is_refused() {
    let options = AppendOptions { file_size: Log::LARGE, max_message_size: 8 << 20, ..options() };
    // the third of each is kept
    let log = Log::of_large(&[10, 3 << 20, 3_500_000, 20, 2 << 20, 3_900_000, 30, 1 << 20, 2_000_000, 5]);
    let copy = Copy::with(options);
    copy.take(&log.bytes, &["T2"], 1 << 20);
    assert!(copy.log() == kept(&log.bytes, &["T2"], Log::LARGE));
    let copy = Copy::with(options);
    let peer = Peer::serving(&log.bytes, 1 << 20);
    let topics = vec!["T0".to_owned()];
    let follow = Follow { topics, max_record: 3 << 20, ..follow(&peer.address, 0) };
    let follower = Follower::start(copy.appender.clone(), copy.dir.path(), follow).expect("started");
    let end = follower.wait(Duration::from_secs(60)).expect("an end");
    assert!(matches!(&*end, End::Broken { reason, .. } if reason.contains("at most 3145728 bytes")), "{end}");
}

/// A disk that does not take what was written.
struct Failing;

impl Watcher for Failing {
    fn before(&self, call: Call, _: &Path) -> io::Result<()> {
        if matches!(call, Call::Sync) { Err(io::Error::other("gone")) } else { Ok(()) }
    }
    fn after(&self, _: Call, _: &Path) {}
}

#[test]
fn a_mark_is_never_ahead_of_what_the_disk_has() {
    let log = Log::new(50, 900);
    let copy = Copy::new();
    let failing = disk::watch(&copy.dir.path().join("commitlog"), Arc::new(Failing));
    let follower = copy.follow(&Peer::serving(&log.bytes, 4000), &["T1"]).expect("started");
    until("it is there, or was not", || {
        follower.progress().position == log.bytes.len() as u64 || follower.wait(Duration::ZERO).is_some()
    });
    follower.stop();
    let end = follower.wait(Duration::ZERO).expect("over");
    assert!(matches!(&*end, End::Store(_)), "{end}");
    assert_eq!(copy.mark(), Mark::first(0, FILE));
    drop(failing);
}

#[test]
fn a_mark_waits_for_the_disk() {
    let (log, copy) = (Log::new(50, 900), Copy::new());
    let gate = Arc::new(Gate::default());
    let watch = disk::watch(&copy.dir.path().join("commitlog"), gate.clone());
    let made = kept(&log.bytes, &["T1"], FILE);
    copy.appender.copy_log(FILE, &made, None).expect("copied");
    let mark = Mark { position: log.bytes.len() as u64, copy_end: FILE + made.len() as u64, compare_from: 0, crc: 7 };
    let root = copy.dir.path().to_path_buf();
    let mut keeper = MarkKeeper::new(copy.appender.clone(), root, copy.mark(), Duration::ZERO);
    for _ in 0..3 {
        keeper.keep(mark).expect("kept");
        assert_eq!(copy.mark(), Mark::first(0, FILE));
    }
    gate.is_open.store(true, Ordering::SeqCst);
    copy.appender.wait_flushed(mark.copy_end, None).expect("flushed");
    keeper.keep(mark).expect("kept");
    assert_eq!(copy.mark(), mark);
    drop(watch);
}

#[test]
fn a_copy_without_its_mark_or_behind_it_is_refused() {
    let log = Log::new(100, 900);
    let mut copy = Copy::new();
    copy.take(&log.bytes, &["T1"], 4000);
    let (peer, mark) = (Peer::serving(&log.bytes, 4000), copy.mark());
    let refused = |copy: &Copy, from| copy.follow_from(&peer, &["T1"], from).expect_err("refused").to_string();
    assert!(refused(&copy, mark.position + 1).contains("as the copy's mark says"));
    copy.killed(mark, mark.copy_end - 1);
    let text = refused(&copy, mark.compare_from);
    assert!(text.contains(&format!("is to have a record that ends at {}", mark.copy_end)), "{text}");
    std::fs::remove_file(copy.dir.path().join("mirror-position.json")).expect("removed");
    assert!(refused(&copy, 0).contains("expected a copy of some topics"));
}
