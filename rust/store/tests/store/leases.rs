//! Scans through maps under leases: the rows and the damage of `pread`, and nobody has to wait for a scan at rest.
use crate::directory;
use arrow_array::RecordBatch;
use rmqfast_os::lease::Lease;
use rmqfast_store::file::Io;
use rmqfast_store::file::disk::{Call, Look, Watcher, watch};
use rmqfast_store::scan::{Plan, ScanRequest, Scanner, Way};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_store::store::{Damage, MessageStore, OpenOptions};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const FILE: u64 = 1 << 20;
const MESSAGES: u64 = 9000;
/// The ways through a store: along the log, or by the entries of the queues.
const WAYS: [Way; 2] = [Way::Log, Way::Queue];
/// O_NONBLOCK of Linux.
const NONBLOCK: i32 = 0o4000;

/// A closed store of some ten files.
fn closed_store() -> TempDir {
    let dir = directory();
    let options = AppendOptions { file_size: FILE, ..AppendOptions::default() };
    let appender = Appender::open(dir.path(), options).expect("new");
    let message = |n: u64| OwnedMessage {
        topic: "T".into(),
        tags: Some(format!("tag{}", n % 7)),
        body: vec![b'a' + (n % 26) as u8; 900 + n as usize % 200],
        ..OwnedMessage::default()
    };
    for first in (0..MESSAGES).step_by(1000) {
        appender.append(&Messages::new((first..first + 1000).map(message).collect()), None, 0).expect("appended");
    }
    appender.close().expect("closed");
    dir
}

fn file(root: &Path, number: u64) -> PathBuf {
    root.join(format!("commitlog/{:020}", number * FILE))
}

/// Returns whether this machine gives leases of the files in a directory.
fn has_leases(root: &Path) -> bool {
    Lease::take(&Arc::new(File::open(file(root, 0)).expect("opened"))).is_some()
}

fn open(root: &Path, io: Io) -> MessageStore {
    MessageStore::open(root, &OpenOptions { io, ..OpenOptions::default() }).expect("opened")
}

fn scanner(store: &MessageStore, way: Way) -> Scanner {
    let request = ScanRequest { topic: Some("T".into()), batch_rows: 300, verify_crc: true, ..ScanRequest::default() };
    let plan = Plan::new(store, &request, Some(way)).expect("planned");
    Scanner::new(plan.sources, Arc::new(request), plan.pieces)
}

fn next(scanner: &mut Scanner) -> Option<RecordBatch> {
    scanner.next_batch(&mut || Ok(())).expect("read")
}

/// The batches and the damage of a scan. `between` is called behind the second batch.
fn scan(store: &MessageStore, way: Way, between: impl FnOnce()) -> (Vec<RecordBatch>, Vec<Damage>) {
    let mut scanner = scanner(store, way);
    let mut batches: Vec<_> = (0..2).filter_map(|_| next(&mut scanner)).collect();
    between();
    batches.extend(std::iter::from_fn(|| next(&mut scanner)));
    (batches, scanner.damage().entries().to_vec())
}

/// Counts the reads by system calls.
#[derive(Default)]
struct Reads(AtomicUsize);

impl Watcher for Reads {
    fn before_look(&self, look: Look, _: &Path) -> io::Result<()> {
        self.0.fetch_add(usize::from(look == Look::Read), Ordering::Relaxed);
        Ok(())
    }
    fn before(&self, _: Call, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn after(&self, _: Call, _: &Path) {}
}

#[test]
fn a_scan_under_leases_makes_no_reads_and_gives_the_same() {
    for way in WAYS {
        let dir = closed_store();
        let reads = Arc::new(Reads::default());
        let _watch = watch(&dir.path().join("commitlog"), reads.clone());
        let count_of = |store: &MessageStore| {
            let scanned = scan(store, way, || ());
            (scanned, reads.0.swap(0, Ordering::Relaxed))
        };
        let [plain, by_leases] = [Io::Pread, Io::Auto].map(|io| open(dir.path(), io));
        let by_calls = count_of(&plain).0;
        assert_eq!(by_calls.0.iter().map(RecordBatch::num_rows).sum::<usize>() as u64, MESSAGES);
        assert_eq!(count_of(&by_leases).0, by_calls);
        // The second scan has the maps of the first. No plan looks at the files again.
        let ((by_maps, few), (_, calls)) = (count_of(&by_leases), count_of(&plain));
        assert_eq!(by_maps, by_calls);
        if has_leases(dir.path()) {
            assert!(few < calls / 4, "{few} of {calls} reads");
            // Whoever has a file open for writing keeps it from being read through a map.
            let _writer = File::options().write(true).open(file(dir.path(), 1)).expect("opened");
            let (beside, some) = count_of(&by_leases);
            assert_eq!(beside, by_calls);
            assert!(some > few, "{some} reads");
        }
    }
}

#[test]
fn a_scan_at_rest_lets_nobody_wait() {
    for way in WAYS {
        let dir = closed_store();
        let mut scanner = scanner(&open(dir.path(), Io::Auto), way);
        // With O_NONBLOCK a file under a lease cannot be opened for writing.
        let open = |number| File::options().write(true).custom_flags(NONBLOCK).open(file(dir.path(), number));
        let mut rows = 0;
        while let Some(batch) = next(&mut scanner) {
            rows += batch.num_rows() as u64;
            (0..3).for_each(|number| drop(open(number).expect("no lease")));
        }
        assert_eq!(rows, MESSAGES);
    }
}

#[test]
fn a_lease_ends_before_anything_is_waited_for() {
    let dir = closed_store();
    let mut scanner = scanner(&open(dir.path(), Io::Auto), Way::Log);
    let mut looks = 0;
    let mut interrupt = || {
        looks += 1;
        drop(File::options().write(true).custom_flags(NONBLOCK).open(file(dir.path(), 0)).expect("no lease"));
        Ok(())
    };
    while scanner.next_batch(&mut interrupt).expect("read").is_some() {}
    assert!(looks > 10);
}

/// Harm that is done to the files of a store.
const HARMS: [fn(&Path); 5] = [
    |root| File::options().write(true).open(file(root, 2)).and_then(|file| file.set_len(70_001)).expect("cut"),
    |root| File::options().write(true).open(file(root, 0)).and_then(|file| file.set_len(0)).expect("cut"),
    |root| std::fs::remove_file(file(root, 3)).expect("removed"),
    |root| {
        let file = File::options().write(true).open(file(root, 1)).expect("opened");
        file.write_all_at(&[0x5A; 3000], 500_000).expect("written");
    },
    |root| {
        let (old, new) = (file(root, 2), root.join("new"));
        std::fs::copy(&old, &new).expect("copied");
        File::options()
            .write(true)
            .open(&new)
            .and_then(|file| file.write_all_at(&[0x5A; 3000], 500_000))
            .expect("written");
        std::fs::rename(&new, &old).expect("replaced");
    },
];

#[test]
fn what_happens_to_files_between_two_batches_is_told_as_by_pread() {
    for (number, harm) in HARMS.into_iter().enumerate() {
        for way in WAYS {
            assert_same(number, |io, root| scan(&open(root, io), way, || harm(root)));
        }
    }
}

#[test]
fn what_happens_to_files_between_two_scans_is_told_as_by_pread() {
    for (number, harm) in HARMS.into_iter().enumerate() {
        for way in WAYS {
            assert_same(number, |io, root| {
                let store = open(root, io);
                assert!(scan(&store, way, || ()).1.is_empty());
                harm(root);
                scan(&store, way, || ())
            });
        }
    }
}

/// Asserts that the scan gives the same rows and damage by both ways of reading, and some damage.
fn assert_same(number: usize, scan: impl Fn(Io, &Path) -> (Vec<RecordBatch>, Vec<Damage>)) {
    let scans = [Io::Pread, Io::Auto].map(|io| {
        let dir = closed_store();
        let (batches, damage) = scan(io, dir.path());
        let place = |damage: &Damage| (damage.offset, damage.length, damage.reason.clone());
        (batches.iter().map(RecordBatch::num_rows).sum::<usize>(), damage.iter().map(place).collect::<Vec<_>>())
    });
    assert!(!scans[0].1.is_empty(), "harm {number}");
    assert_eq!(scans[0], scans[1], "harm {number}");
}

#[test]
fn bytes_that_are_lost_in_a_map_are_an_error_or_damage() {
    for (cut, way) in [(300_000, Way::Log), (4096 * 20 + 7, Way::Log), (300_000, Way::Queue)] {
        let dir = closed_store();
        let mut scanner = scanner(&open(dir.path(), Io::Mmap), way);
        let mut rows = next(&mut scanner).map_or(0, |batch| batch.num_rows());
        File::options().write(true).open(file(dir.path(), 0)).and_then(|file| file.set_len(cut)).expect("cut");
        let error = loop {
            match scanner.next_batch(&mut || Ok(())) {
                Ok(Some(batch)) => rows += batch.num_rows(),
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        assert!((rows as u64) < MESSAGES);
        assert!(error.is_some() || !scanner.damage().is_empty(), "{rows} rows, and nothing told");
        if error.is_some() {
            let again = scanner.next_batch(&mut || Ok(())).map(drop).map_err(|error| error.to_string());
            assert_eq!(again.err(), error, "a scan that has failed fails again");
        }
    }
}
