//! A log that ends before what was flushed of it is opened by nobody who appends; once its end is given up by name, no queue offset is
//! given twice.
use super::{append, assert_sound, copy, files, killed, options, records, sample};
use crate::chance::Chance;
use crate::directory;
use rmqfast_store::Error;
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::format::message::Message;
use rmqfast_store::store::append::{AppendOptions, Appender, cut, missing_end, repair};
use rmqfast_store::store::commit_log::DamageLog;
use rmqfast_store::store::{LogWalk, MessageStore, OpenOptions};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

const COUNT: usize = 120;
type Ends = BTreeMap<(String, i32), i64>;
type Change<'a> = &'a dyn Fn(&Path);

fn last_file(root: &Path) -> PathBuf {
    let names = fs::read_dir(root.join("commitlog")).expect("listed").map(|entry| entry.expect("a file").path());
    names.max().expect("a file")
}

/// Has the log end at `at`: zeroes come behind, files that follow are removed.
fn end_at(root: &Path, at: u64) {
    for entry in fs::read_dir(root.join("commitlog")).expect("listed") {
        let path = entry.expect("a file").path();
        let base: u64 = path.file_name().and_then(|n| n.to_str()).expect("a name").parse().expect("a number");
        let mut bytes = fs::read(&path).expect("read");
        let left = at.saturating_sub(base).min(bytes.len() as u64) as usize;
        bytes[left..].fill(0);
        if left == 0 && base > 0 { fs::remove_file(&path) } else { fs::write(&path, bytes) }.expect("changed");
    }
}

/// Where each queue ends.
fn ends(root: &Path) -> Ends {
    let store = MessageStore::open(root, &OpenOptions::default()).expect("opened");
    let queues = store.all_queues().expect("listed").into_iter();
    queues.map(|q| ((q.topic().to_owned(), q.queue_id()), q.max_offset().expect("read"))).collect()
}

/// Queue offsets of the messages that stand in the log from `from` on.
fn offsets_from(root: &Path, from: u64) -> Vec<((String, i32), i64)> {
    let store = MessageStore::open(root, &OpenOptions::default()).expect("opened");
    let mut walk = LogWalk::new(store.log().clone(), from, u64::MAX, 0).without_waiting();
    let (mut offsets, mut damage) = (Vec::new(), DamageLog::default());
    while walk.advance(&mut damage).expect("read") {
        offsets.extend(walk.block().records.iter().map(|record| {
            let message = Message::new(&walk.block().bytes[record.at as usize..], record.layout).expect("whole");
            let topic = String::from_utf8(message.topic().to_vec()).expect("a topic");
            ((topic, message.queue_id()), message.queue_offset())
        }));
    }
    assert_eq!(damage.entries(), []);
    offsets
}

/// The end of the log, which an appender refuses by name, and which changes nothing.
#[track_caller]
fn refused(root: &Path) -> u64 {
    let before = files(root);
    let error = Appender::open(root, options()).expect_err("refused");
    let missing = missing_end(root).expect("read").expect("missing");
    let (text, path) = (error.to_string(), missing.file.display().to_string());
    for part in [
        &path,
        &missing.expected.to_string(),
        &missing.log_end.to_string(),
        &format!("store repair {}", root.display()),
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let text = repair(root, options(), None, &mut |_, _| Ok(())).expect_err("refused").to_string();
    assert!(text.contains("nothing was changed"), "{text}");
    let other = repair(root, options(), Some(missing.log_end + 1), &mut |_, _| Ok(())).expect_err("not its end");
    assert!(matches!(other, Error::Invalid { .. }), "{other}");
    assert!(before == files(root), "something was changed");
    missing.log_end
}

/// Gives up the end of a log, then appends, with a clean stop and with a kill: no queue offset is given twice.
fn assert_goes_on(root: &Path, ended: &Ends) {
    let at = refused(root);
    let left = repair(root, options(), Some(at), &mut |_, _| Ok(())).expect("repaired").log_end;
    assert_eq!(missing_end(root).expect("read"), None);
    assert_appends(root, left, ended);
}

fn assert_appends(root: &Path, left: u64, ended: &Ends) {
    for turn in 0..4 {
        let appender = Appender::open(root, options()).unwrap_or_else(|error| panic!("turn {turn}: {error}"));
        append(&appender, 200 + turn * 7, 207 + turn * 7);
        if turn % 2 == 0 {
            appender.close().expect("closed");
        }
    }
    Appender::open(root, options()).and_then(|appender| appender.close()).expect("recovered");
    let report = MessageStore::open(root, &OpenOptions::default()).and_then(|s| s.verify(true, &mut |_, _| Ok(())));
    let report = report.expect("read");
    assert_eq!((report.damage.entries(), report.unlisted, report.forgotten), (&[][..], 0, 0));
    let mut given = offsets_from(root, left);
    assert_eq!(given.len(), 28);
    assert!(
        given.iter().all(|(queue, offset)| *offset >= ended.get(queue).copied().unwrap_or(0)),
        "{given:?} {ended:?}"
    );
    given.sort();
    given.dedup();
    assert_eq!(given.len(), 28);
}

fn harm(root: &Path, kind: usize) {
    let last = last_file(root);
    let bytes = fs::read(&last).expect("read");
    let ends = records(root);
    let base = ends[ends.len() - 1] / 4096 * 4096;
    match kind {
        0 => fs::write(&last, []).expect("emptied"),
        1 => fs::write(&last, vec![0; bytes.len()]).expect("zeroed"),
        2 => fs::write(&last, &bytes[..(ends[ends.len() - 2] - base) as usize]).expect("cut between records"),
        3 => fs::write(&last, &bytes[..(ends[ends.len() - 2] - base) as usize + 30]).expect("cut in a record"),
        4 => fs::remove_file(&last).expect("removed"),
        5 => fs::remove_file(&last).and_then(|()| symlink("nowhere", &last)).expect("not mounted"),
        6 => fs::remove_dir_all(root.join("commitlog")).expect("removed"),
        _ => end_at(root, ends[ends.len() - 2]),
    }
}

#[test]
fn a_closed_store_whose_log_lost_its_end_is_refused_and_gives_no_offset_twice_behind_a_cut() {
    for kind in 0..8 {
        let dir = copy(sample().path());
        let ended = ends(dir.path());
        harm(dir.path(), kind);
        assert_goes_on(dir.path(), &ended);
    }
}

#[test]
fn a_log_of_one_file_goes_on_behind_two() {
    for kind in 0..8 {
        let dir = directory();
        let appender = Appender::open(dir.path(), options()).expect("new");
        append(&appender, 0, 9);
        appender.close().expect("closed");
        let ended = ends(dir.path());
        harm(dir.path(), kind);
        assert_goes_on(dir.path(), &ended);
        // a broker of RocketMQ takes what the last unit of a queue says for the end of what is listed
        let size =
            MessageStore::open(dir.path(), &OpenOptions::default()).expect("opened").log().segments().file_size();
        assert_eq!(size, Some(4096), "{kind}");
    }
}

#[test]
fn each_of_checkpoint_queues_index_and_times_alone_vouches_for_the_end() {
    let without_end = |root: &Path| {
        let path = root.join("checkpoint");
        let mut page = fs::read(&path).expect("read");
        page[4064..].fill(0);
        fs::write(path, page).expect("written");
    };
    let without = |name: &'static str| {
        move |root: &Path| match root.join(name) {
            path if path.is_dir() => fs::remove_dir_all(path).expect("removed"),
            path => fs::remove_file(path).expect("removed"),
        }
    };
    let parts: [(&str, Change<'_>); 4] = [
        ("the checkpoint", &|root| ["consumequeue", "index"].iter().for_each(|name| without(name)(root))),
        ("queue ", &|root| ["checkpoint", "index"].iter().for_each(|name| without(name)(root))),
        ("the index", &|root| ["checkpoint", "consumequeue"].iter().for_each(|name| without(name)(root))),
        ("stored until", &|root| {
            without_end(root);
            ["consumequeue", "index"].iter().for_each(|name| without(name)(root));
        }),
    ];
    for (witness, remove) in parts {
        let dir = copy(sample().path());
        // the last one has keys
        let at = records(dir.path())[COUNT - 9];
        end_at(dir.path(), at);
        remove(dir.path());
        let missing = missing_end(dir.path()).expect("read").expect("missing");
        assert!(missing.witness.contains(witness) && missing.log_end == at, "{witness}: {missing:?}");
        refused(dir.path());
        let dir = copy(sample().path());
        remove(dir.path());
        assert_eq!(missing_end(dir.path()).expect("read"), None, "{witness} of a sound log");
        Appender::open(dir.path(), options()).and_then(|appender| appender.close()).expect("opened");
    }
}

#[test]
fn a_log_cut_at_any_byte_is_refused_if_it_was_closed_and_opens_if_that_was_not_flushed() {
    let (closed, crashed) = (sample(), killed(COUNT));
    let places = records(crashed.path());
    let flushed = missing_after(crashed.path(), places[COUNT]);
    let mut chance = Chance(46);
    for _ in 0..150 {
        let at = 1 + chance.below(places[COUNT] - 1);
        let dir = copy(closed.path());
        end_at(dir.path(), at);
        let whole = |at| places.iter().rfind(|place| **place <= at).copied().expect("the first");
        // zeroes in place of a record's last bytes may be properties
        if whole(at) < places[COUNT] && MessageStore::open(dir.path(), &OpenOptions::default()).is_ok() {
            assert!(missing_end(dir.path()).expect("read").is_some() || at > places[COUNT - 1], "cut at {at}");
        }
        let dir = copy(crashed.path());
        end_at(dir.path(), at);
        let missing = missing_end(dir.path()).expect("read");
        assert_eq!(missing.is_some(), whole(at) < flushed && at < flushed, "cut at {at}: {missing:?}");
        if missing.is_none() {
            Appender::open(dir.path(), options()).and_then(|appender| appender.close()).expect("recovered");
        }
    }
}

/// Up to where the checkpoint of a store says that its log was flushed, whose log ends at `end`.
fn missing_after(root: &Path, end: u64) -> u64 {
    let flushed = MessageStore::open(root, &OpenOptions::default())
        .expect("opened")
        .flushed_end()
        .expect("read")
        .expect("flushed")
        .offset;
    assert!(0 < flushed && flushed < end);
    flushed
}

#[test]
fn what_was_not_flushed_before_a_crash_is_cut_without_a_word() {
    let dir = killed(COUNT);
    let (ended, places) = (ends(dir.path()), records(dir.path()));
    end_at(dir.path(), places[COUNT - 20]);
    let appender = Appender::open(dir.path(), options()).expect("recovered");
    append(&appender, 0, 1);
    appender.close().expect("closed");
    assert!(ends(dir.path()).values().sum::<i64>() < ended.values().sum::<i64>());
    assert_sound(dir.path(), COUNT - 20 + 1);
    let dir = killed(COUNT);
    end_at(dir.path(), places[COUNT / 2 - 5]);
    assert_goes_on(dir.path(), &ends(dir.path()));
}

#[test]
fn a_unit_that_was_damaged_is_no_lost_log() {
    let dir = copy(sample().path());
    fs::remove_file(dir.path().join("checkpoint")).expect("removed");
    let places = records(dir.path());
    let last = places[COUNT - 1].to_be_bytes();
    let queue = |path: &&PathBuf| {
        path.starts_with("consumequeue") && has(&fs::read(dir.path().join(path)).expect("read"), &last)
    };
    let all = files(dir.path());
    let path = dir.path().join(all.keys().find(queue).expect("it is listed"));
    let mut bytes = fs::read(&path).expect("read");
    let at = bytes.windows(8).position(|eight| eight == last).expect("there");
    bytes[at + 2] ^= 1;
    fs::write(&path, bytes).expect("written");
    Appender::open(dir.path(), options()).and_then(|appender| appender.close()).expect("listed again");
    assert_sound(dir.path(), COUNT);
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_copy_whose_end_is_lost_fetches_it_again_and_is_no_broker_s_until_then() {
    let dir = copy(sample().path());
    let places = records(dir.path());
    end_at(dir.path(), places[100]);
    let follows = AppendOptions { replica_from: Some(0), ..options() };
    let replica = Appender::open(dir.path(), follows).expect("opened");
    assert_eq!(replica.log_end().expect("open"), places[100]);
    replica.close().expect("closed");
    let error = Appender::open(dir.path(), options()).expect_err("its end is not there").to_string();
    assert!(error.contains(&places[COUNT].to_string()), "{error}");
    // what the master withdraws is no loss
    cut(dir.path(), places[90], options(), &mut |_, _| Ok(())).expect("cut");
    Appender::open(dir.path(), options()).and_then(|appender| appender.close()).expect("opened");
    assert_sound(dir.path(), 90);
}

#[test]
fn a_repair_that_is_ended_anywhere_gives_no_offset_twice() {
    struct Ended(AtomicU64);
    impl Watcher for Ended {
        fn before(&self, _: Call, _: &Path) -> io::Result<()> {
            let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            left.map(drop).map_err(|_| io::Error::from_raw_os_error(5))
        }
        fn after(&self, _: Call, _: &Path) {}
    }
    let harmed = || -> TempDir {
        let dir = copy(sample().path());
        harm(dir.path(), 4);
        dir
    };
    let ended = ends(sample().path());
    for calls in 0.. {
        let dir = harmed();
        let at = missing_end(dir.path()).expect("read").expect("missing").log_end;
        let watch = disk::watch(dir.path(), Arc::new(Ended(AtomicU64::new(calls))));
        let done = repair(dir.path(), options(), Some(at), &mut |_, _| Ok(()));
        drop(watch);
        if missing_end(dir.path()).is_ok_and(|missing| missing.is_some()) {
            refused(dir.path());
            repair(dir.path(), options(), Some(at), &mut |_, _| Ok(())).expect("repaired");
        }
        let appender = Appender::open(dir.path(), options()).expect("opened");
        let left = appender.log_end().expect("open");
        appender.close().expect("closed");
        assert_appends(dir.path(), left, &ended);
        if done.is_ok() {
            assert!(calls > 10);
            break;
        }
    }
}

/// The disk is full when a file is written.
struct NoRoom;

impl Watcher for NoRoom {
    fn before(&self, call: Call, _: &Path) -> io::Result<()> {
        if call == Call::Write { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
    fn after(&self, _: Call, _: &Path) {}
}

#[test]
fn a_killed_store_opens_although_the_ends_of_queues_find_no_room() {
    let dir = copy(sample().path());
    append(&Appender::open(dir.path(), options()).expect("opened"), COUNT, COUNT + 30);
    let former = fs::read(dir.path().join("queue.ends")).expect("of the last close");
    let watch = disk::watch(&dir.path().join("queue.ends.tmp"), Arc::new(NoRoom));
    let appender = Appender::open(dir.path(), options()).expect("recovered");
    assert!(appender.recovery().is_some());
    assert_eq!(fs::read(dir.path().join("queue.ends")).expect("still there"), former);
    assert!(appender.close().expect_err("no room").is_disk_full());
    drop(watch);
    let appender = Appender::open(dir.path(), options()).expect("opened");
    assert!(appender.recovery().is_some(), "the close that failed was not clean");
    appender.close().expect("closed");
    assert_ne!(fs::read(dir.path().join("queue.ends")).expect("saved"), former);
    assert_sound(dir.path(), COUNT + 30);
}

#[test]
fn former_ends_of_queues_go_with_the_end_of_the_log_if_new_ones_find_no_room() {
    let dir = copy(sample().path());
    end_at(dir.path(), fs::metadata(last_file(dir.path())).expect("there").len());
    let log_end = missing_end(dir.path()).expect("read").expect("missing").log_end;
    let watch = disk::watch(&dir.path().join("queue.ends.tmp"), Arc::new(NoRoom));
    repair(dir.path(), options(), Some(log_end), &mut |_, _| Ok(())).expect("repaired");
    assert!(!dir.path().join("queue.ends").exists(), "it says that the log went on");
    drop(watch);
}
