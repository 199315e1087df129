//! Numbers that no checksum guards, with any value: of records, units, headers, and the lengths of files. A store opens, or says why not;
//! a repair has a way; no queue offset is given twice.
use super::{append, chosen, copy, files, mutation_seeds, options, records, sample};
use crate::directory;
use crate::figures::{Figures, Found};
use proptest::prelude::*;
use proptest::sample::Index;
use rmqfast_store::Error;
use rmqfast_store::store::append::{Appender, Messages, OwnedMessage, missing_end, repair};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::fs;
use std::path::Path;

/// What is changed.
#[derive(Clone, Debug)]
enum Number {
    /// Position and bytes of a field of a record: queue id, flag, queue offset, system flag, store time.
    OfRecord(Index, (usize, usize), i64),
    /// The same of a 20-byte unit, or of an index header, in a file of that directory.
    OfFile(&'static str, Index, Index, i64),
    /// The length of a file.
    Length(&'static str, Index, u64),
}

fn numbers() -> impl Strategy<Value = Number> {
    let at = any::<Index>;
    let value = || {
        prop_oneof![
            (0..63_u32).prop_map(|bit| 1_i64 << bit),
            (0..63_u32).prop_map(|bit| -(1_i64 << bit)),
            Just(i64::MIN),
            Just(i64::MAX),
            Just(-1),
            -100..100_i64,
        ]
    };
    let field = prop_oneof![1 => Just((12, 4)), 1 => Just((16, 4)), 4 => Just((20, 8)), 1 => Just((56, 8))];
    let directory = || prop_oneof![3 => Just("commitlog"), 2 => Just("consumequeue"), 1 => Just("index")];
    prop_oneof![
        6 => (at(), field, value()).prop_map(|(at, field, value)| Number::OfRecord(at, field, value)),
        2 => (at(), at(), value()).prop_map(|(file, at, value)| Number::OfFile("consumequeue", file, at, value)),
        1 => (at(), at(), value()).prop_map(|(file, at, value)| Number::OfFile("index", file, at, value)),
        3 => (directory(), at(), prop_oneof![0..20_u64, 0..5000_u64]).prop_map(|(name, at, len)| Number::Length(name, at, len)),
    ]
}

fn change(root: &Path, places: &[u64], number: &Number) {
    let in_directory = |name: &str, which: &Index| {
        let all: Vec<_> = files(root).into_keys().filter(|path| path.starts_with(name)).collect();
        all.get(which.index(all.len().max(1))).map(|path| root.join(path))
    };
    let put = |path: &Path, at: usize, value: &[u8]| {
        let mut bytes = fs::read(path).expect("read");
        let Some(place) = bytes.get_mut(at..at + value.len()) else { return };
        place.copy_from_slice(value);
        fs::write(path, bytes).expect("written");
    };
    match number {
        Number::OfRecord(which, (at, len), value) => {
            // those at the end more often than others: of each queue the last is among them
            let from = places[places.len() - 2 - which.index(places.len() - 1) * which.index(64) / 64];
            let path = root.join(format!("commitlog/{:020}", from / 4096 * 4096));
            put(&path, from as usize % 4096 + at, &value.to_be_bytes()[8 - len..]);
        }
        Number::OfFile(name, which, at, value) => {
            let Some(path) = in_directory(name, which) else { return };
            let words = (fs::metadata(&path).expect("there").len() as usize / 4).max(1);
            put(&path, at.index(words) * 4, &value.to_be_bytes());
        }
        Number::Length(name, which, len) => {
            let Some(path) = in_directory(name, which) else { return };
            fs::File::options().write(true).open(path).and_then(|file| file.set_len(*len)).expect("cut");
        }
    }
}

/// Opens, or repairs and opens; what a person has to decide is told, and decided.
fn opened(root: &Path) -> Option<Appender> {
    match Appender::open(root, options()) {
        Err(Error::Corrupt { .. } | Error::Invalid { .. }) => {
            let at = match missing_end(root) {
                Ok(missing) => missing.map(|missing| missing.log_end),
                Err(error) => return only_damaged(&error),
            };
            match repair(root, options(), at, &mut |_, _| Ok(())) {
                Ok(_) => Some(Appender::open(root, options()).expect("repaired")),
                Err(error) => only_damaged(&error),
            }
        }
        opened => Some(opened.expect("opened")),
    }
}

/// A log that is damaged in its middle is left to be read.
fn only_damaged(error: &Error) -> Option<Appender> {
    assert!(error.to_string().contains("read the store with mode"), "{error}");
    None
}

#[test]
fn whatever_a_number_says_a_store_opens_or_is_repaired_and_takes_messages() {
    let sample = sample();
    let places = records(sample.path());
    let mut figures = Figures::new("numbers that no checksum guards");
    for seed in mutation_seeds() {
        figures.run(seed, || {
            let changes = chosen(seed, &prop::collection::vec(numbers(), 1..3));
            let dir = copy(sample.path());
            changes.iter().for_each(|number| change(dir.path(), &places, number));
            let store = MessageStore::open(dir.path(), &OpenOptions::default()).expect("opened");
            store.verify(true, &mut |_, _| Ok(())).expect("read");
            let Some(appender) = opened(dir.path()) else { return Found::default() };
            append(&appender, 200, 230);
            appender.close().expect("closed");
            let appender = Appender::open(dir.path(), options()).expect("opened again");
            append(&appender, 230, 240);
            appender.close().expect("closed");
            Found::default()
        });
    }
    figures.tell();
}

#[test]
fn a_negative_queue_offset_is_passed_over_and_no_offset_is_given_twice() {
    for value in [i64::MIN, -1, -5, 0, 1, 1 << 40, 1 << 62] {
        for back in [1, 2, 3, 60] {
            let dir = directory();
            let appender = Appender::open(dir.path(), options()).expect("new");
            let put = |appender: &Appender, count: usize| {
                let message = OwnedMessage { topic: "T".into(), body: vec![7; 30], ..OwnedMessage::default() };
                let all = Messages::new(vec![message; count]);
                appender.append(&all, Some(1_700_000_000_000), 0).expect("appended").last.expect("one").queue_offset
            };
            assert_eq!(put(&appender, 60), 59);
            appender.close().expect("closed");
            let places = records(dir.path());
            let at = places[60 - back];
            let path = dir.path().join(format!("commitlog/{:020}", at / 4096 * 4096));
            let mut bytes = fs::read(&path).expect("read");
            bytes[at as usize % 4096 + 20..][..8].copy_from_slice(&value.to_be_bytes());
            fs::write(&path, bytes).expect("written");
            let other = copy(dir.path());
            repair(other.path(), options(), None, &mut |_, _| Ok(())).expect("repaired");
            for root in [dir.path(), other.path()] {
                let appender = Appender::open(root, options()).expect("opened");
                assert!(put(&appender, 1) >= 60, "{value}, {back}");
                drop(appender);
                let appender = Appender::open(root, options()).expect("recovered");
                assert!(put(&appender, 1) >= 61, "{value}, {back}");
                appender.close().expect("closed");
            }
        }
    }
}

#[test]
fn a_log_file_of_a_few_bytes_gets_the_size_of_a_file() {
    for len in 0..100 {
        let dir = directory();
        fs::create_dir_all(dir.path().join("commitlog")).expect("made");
        fs::write(dir.path().join("commitlog/00000000000000000000"), vec![0; len]).expect("written");
        let appender = Appender::open(dir.path(), options()).expect("opened");
        append(&appender, 0, 3);
        appender.close().expect("closed");
        let queue = dir.path().join("consumequeue/orders/0");
        let file = fs::read_dir(&queue).expect("listed").next().expect("one").expect("a file").path();
        for len in [0, 1, 19, 21] {
            fs::File::options().write(true).open(&file).and_then(|file| file.set_len(len)).expect("cut");
            let appender = Appender::open(dir.path(), options()).expect("listed again");
            append(&appender, 6, 9);
            appender.close().expect("closed");
        }
    }
}
