//! Checkpoint, `abort`, `lock` and configuration, changed in any way: a store opens, or says why not, and its queues and its index
//! are those of a store that nothing happened to.
use super::{
    Files, Mutation, append, assert_sound, chosen, differing, files, index, killed, mutate, mutation_seeds, mutations,
    options, part, records, restore,
};
use crate::directory;
use crate::figures::{Figures, Found};
use proptest::prelude::*;
use proptest::sample::Index;
use rmqfast_store::format::checkpoint::Checkpoint;
use rmqfast_store::store::append::Appender;
use rmqfast_store::store::config_files::save;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

const SMALL_FILES: [&str; 6] = [
    "checkpoint",
    "abort",
    "lock",
    "config/topics.json",
    "config/consumerOffset.json",
    "config/consumerOffset.json.bak",
];
const COUNT: usize = 90;

/// What happens to a small file.
#[derive(Clone, Debug)]
enum Change {
    Mutated(Mutation),
    Emptied,
    Garbage(Vec<u8>),
    /// Times of a checkpoint.
    Times(i64, i64, i64),
    Swapped(Index),
    Directory,
}

fn changes() -> impl Strategy<Value = Change> {
    let time = || prop_oneof![any::<i64>(), 0..4_000_000_000_000_i64, Just(i64::MAX), Just(-1), Just(0)];
    prop_oneof![
        6 => mutations().prop_map(Change::Mutated),
        1 => Just(Change::Emptied),
        2 => prop::collection::vec(any::<u8>(), 0..5000).prop_map(Change::Garbage),
        3 => (time(), time(), time()).prop_map(|(a, b, c)| Change::Times(a, b, c)),
        2 => any::<Index>().prop_map(Change::Swapped),
        1 => Just(Change::Directory),
    ]
}

fn apply(root: &Path, name: &str, change: &Change) {
    let path = root.join(name);
    if !path.exists() {
        fs::write(&path, b"").expect("written");
    }
    match change {
        _ if path.is_dir() => {}
        Change::Mutated(mutation) => mutate(&path, mutation),
        Change::Emptied => fs::write(&path, b"").expect("written"),
        Change::Garbage(bytes) => fs::write(&path, bytes).expect("written"),
        Change::Times(a, b, c) => fs::write(&path, checkpoint(*a, *b, *c)).expect("written"),
        Change::Swapped(with) => {
            let (with, aside) = (root.join(SMALL_FILES[with.index(SMALL_FILES.len())]), root.join("config/aside"));
            if with.is_file() {
                for (from, to) in [(&with, &aside), (&path, &with), (&aside, &path)] {
                    let _ = fs::rename(from, to);
                }
            }
        }
        Change::Directory => {
            fs::remove_file(&path).expect("removed");
            fs::create_dir(&path).expect("made");
        }
    }
}

fn checkpoint(physic: i64, logics: i64, index: i64) -> Vec<u8> {
    Checkpoint {
        physic_msg_timestamp: physic,
        logics_msg_timestamp: logics,
        index_msg_timestamp: index,
        ..Checkpoint::default()
    }
    .encode()
    .to_vec()
}

/// A store with a configuration: killed, or closed; and what an opening makes of its queues and its index.
struct Sample {
    before: Files,
    after: Files,
}

fn sample(is_closed: bool) -> Sample {
    let dir = killed(COUNT);
    for n in 1..3 {
        save(dir.path(), "consumerOffset.json", json!({"offsetTable": {"orders@g": {"0": n}}})).expect("saved");
    }
    save(dir.path(), "topics.json", json!({"topicConfigTable": {"orders": {"perm": 6}}})).expect("saved");
    if is_closed {
        Appender::open(dir.path(), options()).and_then(|appender| appender.close()).expect("closed");
    }
    let before = files(dir.path());
    drop(Appender::open(dir.path(), options()).expect("opened"));
    Sample { before, after: files(dir.path()) }
}

fn samples() -> std::rc::Rc<[Sample; 2]> {
    thread_local!(static SAMPLES: std::rc::Rc<[Sample; 2]> = std::rc::Rc::new([sample(false), sample(true)]));
    SAMPLES.with(std::rc::Rc::clone)
}

/// Opens within a time in which any store of this size is recovered.
fn open_in_time(root: &Path) -> rmqfast_store::Result<Appender> {
    let (sender, receiver) = mpsc::channel();
    let root = root.to_path_buf();
    let opening = std::thread::spawn(move || drop(sender.send(Appender::open(&root, options()))));
    let opened = receiver.recv_timeout(Duration::from_secs(60)).expect("it opens, or says why not, in time");
    opening.join().expect("no panic");
    opened
}

/// Opens, compares, goes on and closes; messages that are lost then, or a refusal with its reason.
fn check(root: &Path, before: &Files, after: &Files) -> Found {
    let appender = match open_in_time(root) {
        Ok(appender) => appender,
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(&root.display().to_string()), "{text}");
            assert_same(root, before, &text);
            return Found { refused: 1, ..Found::default() };
        }
    };
    assert_same(root, after, "opened");
    assert!(index(&files(root)) == index(after), "the index differs");
    append(&appender, COUNT, COUNT + 3);
    appender.close().expect("closed");
    let records = records(root).len() as u64 - 1;
    let expected = COUNT as u64 + 3;
    Found { lost: expected.saturating_sub(records), duplicates: records.saturating_sub(expected), refused: 0 }
}

fn assert_same(root: &Path, whole: &Files, words: &str) {
    let files_left = files(root);
    for name in ["commitlog", "consumequeue"] {
        assert_eq!(differing(&part(&files_left, name), &part(whole, name)), Vec::<PathBuf>::new(), "{words}");
    }
}

#[test]
fn small_files_that_were_changed_cost_no_message_no_unit_and_no_key() {
    let samples = samples();
    let strategy = (any::<bool>(), prop::collection::vec((any::<Index>(), changes()), 1..4));
    let mut figures = Figures::new("checkpoint, abort, lock, configuration mutated");
    for seed in mutation_seeds() {
        figures.run(seed, || {
            let (is_closed, changes) = chosen(seed, &strategy);
            let sample = &samples[usize::from(is_closed)];
            let dir = directory();
            restore(dir.path(), &sample.before);
            for (which, change) in &changes {
                apply(dir.path(), SMALL_FILES[which.index(SMALL_FILES.len())], change);
            }
            let outcome = check(dir.path(), &sample.before, &sample.after);
            let may_be_refused = changes.iter().any(|(_, change)| matches!(change, Change::Directory));
            assert!(outcome.refused == 0 || may_be_refused);
            outcome
        });
    }
    figures.tell();
}

#[test]
fn each_byte_of_the_checkpoint_flipped_changes_nothing() {
    let mut figures = Figures::new("a byte of the checkpoint flipped");
    for sample in &*samples() {
        for (at, bits) in (0..24).flat_map(|at| [(at, 1_u8), (at, 0x80), (at, 0xFF)]) {
            figures.run(at as u64, || {
                let dir = directory();
                restore(dir.path(), &sample.before);
                let path = dir.path().join("checkpoint");
                let mut page = fs::read(&path).expect("read");
                page[at] ^= bits;
                fs::write(&path, page).expect("written");
                let outcome = check(dir.path(), &sample.before, &sample.after);
                assert_eq!(outcome.refused, 0);
                outcome
            });
        }
    }
    figures.tell();
}

#[test]
fn a_checkpoint_that_lies_or_is_gone_does_not_hide_units_that_were_lost() {
    let sample = &samples()[0];
    let future = 4_000_000_000_000;
    let pages = [
        None,
        Some(Vec::new()),
        Some(vec![0; 23]),
        Some(vec![0; 4096]),
        Some(checkpoint(-5, -5, -5)),
        Some(checkpoint(future, future, future)),
        Some(checkpoint(i64::MAX, i64::MAX, 0)),
    ];
    for (n, page) in pages.iter().enumerate() {
        for queue in ["orders/0", "orders/1", "clicks/0", "%RETRY%g/1"] {
            let dir = directory();
            restore(dir.path(), &sample.before);
            let path = dir.path().join("checkpoint");
            fs::remove_file(&path).expect("there");
            page.iter().for_each(|page| fs::write(&path, page).expect("written"));
            lose_half(&dir.path().join("consumequeue").join(queue));
            let outcome = check(dir.path(), &sample.before, &sample.after);
            assert_eq!((outcome.lost, outcome.refused), (0, 0), "checkpoint {n}, {queue}");
            assert_sound(dir.path(), COUNT + 3);
        }
    }
}

/// Makes the second half of a queue zero, as after a loss of power.
fn lose_half(queue: &Path) {
    let mut names: Vec<PathBuf> = fs::read_dir(queue).expect("a queue").flatten().map(|entry| entry.path()).collect();
    names.sort_unstable();
    let written = |path: &Path| fs::read(path).expect("read").chunks(20).filter(|unit| unit[8..12] != [0; 4]).count();
    let units: usize = names.iter().map(|path| written(path)).sum();
    let mut keep = units / 2 * 20;
    for path in names {
        let mut bytes = fs::read(&path).expect("read");
        let kept = keep.min(bytes.len());
        bytes[kept..].fill(0);
        keep -= kept;
        fs::write(path, bytes).expect("written");
    }
}
