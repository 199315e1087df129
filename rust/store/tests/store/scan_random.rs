//! Logs with damage in them: nothing that a walk gives is wrong, nothing sound is lost, and every gap is told.
use proptest::prelude::*;
use rmqfast_store::file::Io;
use rmqfast_store::format::host::Host;
use rmqfast_store::format::message::{BLANK_MAGIC, MIN_BLANK_LEN, Message, NewMessage, encode_blank};
use rmqfast_store::store::commit_log::DamageLog;
use rmqfast_store::store::{CommitLog, LogWalk};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

const FILE: usize = 4096;
const PROPERTIES: &[u8] = b"TAGS\x01a";

/// Files of a log, and where its records stand.
#[derive(Clone, Debug)]
struct Log {
    files: BTreeMap<u64, Vec<u8>>,
    records: Vec<Range<u64>>,
}

impl Log {
    fn of(bodies: &[Vec<u8>]) -> Self {
        let mut log = Self { files: BTreeMap::new(), records: Vec::new() };
        let mut position = 0;
        for (n, body) in bodies.iter().enumerate() {
            let len = encode(n, 0, body).len();
            let room = FILE - position % FILE;
            if len + MIN_BLANK_LEN > room {
                log.put(position, &encode_blank(room as u32));
                position += room;
            }
            log.put(position, &encode(n, position, body));
            log.records.push(position as u64..(position + len) as u64);
            position += len;
        }
        log
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let file = self.files.entry((at / FILE * FILE) as u64).or_insert_with(|| vec![0; FILE]);
        file[at % FILE..at % FILE + bytes.len()].copy_from_slice(bytes);
    }

    fn bytes(&self, range: Range<u64>) -> Option<&[u8]> {
        let (start, file) = self.files.range(..=range.start).next_back()?;
        file.get((range.start - start) as usize..(range.end - start) as usize)
    }

    fn write(&self, directory: &Path) {
        for (start, file) in &self.files {
            fs::write(directory.join(format!("{start:020}")), file).expect("written");
        }
    }
}

fn encode(n: usize, position: usize, body: &[u8]) -> Vec<u8> {
    let host = Host::decode(&[127, 0, 0, 1, 0, 0, 0x2A, 0x9F]).expect("a host");
    let message = NewMessage {
        queue_id: 0,
        flag: 0,
        queue_offset: n as i64,
        physical_offset: position as i64,
        sys_flag: 0,
        born_timestamp: 1,
        born_host: host,
        store_timestamp: 2,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body,
        topic: "T",
        properties: PROPERTIES,
    };
    let mut out = Vec::new();
    message.encode(&mut out).expect("fits");
    out
}

#[derive(Clone, Debug)]
enum Harm {
    Flip(prop::sample::Index, u8),
    Fill(prop::sample::Index, usize, u8),
    Garbage(prop::sample::Index, Vec<u8>),
    Stale(prop::sample::Index, prop::sample::Index, usize),
    Truncate(prop::sample::Index, usize),
    Remove(prop::sample::Index),
}

fn harms() -> impl Strategy<Value = Harm> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), 0_u8..8).prop_map(|(at, bit)| Harm::Flip(at, bit)),
        2 => (at(), 1_usize..2000, prop::sample::select(vec![0, 0, 0, 0xA5])).prop_map(|(at, n, b)| Harm::Fill(at, n, b)),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..300)).prop_map(|(at, bytes)| Harm::Garbage(at, bytes)),
        2 => (at(), at(), 1_usize..1500).prop_map(|(from, to, n)| Harm::Stale(from, to, n)),
        1 => (at(), 0..FILE).prop_map(|(file, len)| Harm::Truncate(file, len)),
        1 => at().prop_map(Harm::Remove),
    ]
}

impl Harm {
    fn apply(&self, log: &mut Log) {
        let starts: Vec<u64> = log.files.keys().copied().collect();
        let place = |at: &prop::sample::Index| (starts[at.index(starts.len())], at.index(FILE));
        match self {
            Self::Flip(at, bit) => change(log, place(at), &mut |_, b| b ^ (1 << bit), 1),
            Self::Fill(at, n, with) => change(log, place(at), &mut |_, _| *with, *n),
            Self::Garbage(at, bytes) => change(log, place(at), &mut |i, _| bytes[i], bytes.len()),
            Self::Stale(from, to, n) => {
                let (start, at) = place(from);
                let old: Vec<u8> = log.files[&start].iter().skip(at).take(*n).copied().collect();
                change(log, place(to), &mut |i, _| old[i], old.len());
            }
            Self::Truncate(file, len) => {
                let start = starts[file.index(starts.len())];
                log.files.entry(start).or_default().truncate(*len);
            }
            Self::Remove(file) => drop(log.files.remove(&starts[file.index(starts.len())])),
        }
    }
}

fn change(log: &mut Log, (start, at): (u64, usize), to: &mut dyn FnMut(usize, u8) -> u8, n: usize) {
    let file = log.files.entry(start).or_default();
    file.iter_mut().skip(at).take(n).enumerate().for_each(|(i, byte)| *byte = to(i, *byte));
}

/// What a walk gave: records, and bytes passed over.
struct Walked {
    records: Vec<(Range<u64>, Vec<u8>)>,
    damage: Vec<Range<u64>>,
}

fn walk(directory: &Path, io: Io) -> Walked {
    let log = Arc::new(CommitLog::list(directory, &[directory.to_path_buf()], io).expect("listed"));
    let mut walk = LogWalk::new(log, 0, u64::MAX, 0).with_leases();
    let (mut damage, mut records) = (DamageLog::default(), Vec::new());
    while walk.advance(&mut damage).expect("read") {
        let block = walk.block();
        for record in block.records {
            let message = Message::new(&block.bytes[record.at as usize..], record.layout).expect("inside the block");
            let start = message.physical_offset() as u64;
            records.push((start..start + message.record().len() as u64, message.record().to_vec()));
        }
    }
    assert!(damage.entries().iter().all(|d| d.length > 0 && !d.reason.is_empty() && !d.file.as_os_str().is_empty()));
    Walked { records, damage: damage.entries().iter().map(|d| d.offset..d.offset + d.length).collect() }
}

/// Between records and damage there are blanks and, at the end, zeroes.
fn check_cover(log: &Log, walked: &Walked) {
    let mut damaged: Vec<Range<u64>> =
        walked.records.iter().map(|(r, _)| r.clone()).chain(walked.damage.clone()).collect();
    damaged.sort_by_key(|range| range.start);
    let mut position = log.files.keys().next().copied().unwrap_or(0);
    for range in damaged {
        assert!(range.start >= position, "{range:?} overlaps what ends at {position}");
        check_gap(log, position..range.start);
        position = range.end;
    }
    for (start, file) in log.files.range(..).filter(|(start, file)| *start + file.len() as u64 > position) {
        let rest = &file[position.saturating_sub(*start) as usize..];
        let is_blank = blank_of(rest).is_some_and(|size| size >= rest.len());
        assert!(is_blank || rest.iter().all(|b| *b == 0), "bytes behind {position} are not told");
    }
}

fn check_gap(log: &Log, gap: Range<u64>) {
    let mut at = gap.start;
    while at < gap.end {
        let (start, file) = log.files.range(..=at).next_back().expect("a gap without a file is damage");
        let rest = &file[(at - start) as usize..];
        assert!(blank_of(rest).is_some_and(|size| size >= rest.len()), "silent gap at {at} of {gap:?}");
        at += rest.len() as u64;
    }
    assert_eq!(at, gap.end, "a blank ends with its file");
}

fn blank_of(bytes: &[u8]) -> Option<usize> {
    let (size, magic) = (bytes.get(..4)?, bytes.get(4..8)?);
    (magic == BLANK_MAGIC.to_be_bytes()).then(|| u32::from_be_bytes(size.try_into().expect("4 bytes")) as usize)
}

/// Records are what stands in the files, and those that no harm touched are all there.
fn check_records(whole: &Log, harmed: &Log, walked: &Walked) {
    for (range, bytes) in &walked.records {
        assert_eq!(harmed.bytes(range.clone()), Some(&bytes[..]), "{range:?}");
        assert!(Message::decode(bytes).expect("a record").body_crc_matches());
    }
    for range in &whole.records {
        if harmed.bytes(range.clone()).is_some_and(|now| Some(now) == whole.bytes(range.clone())) {
            assert!(
                walked.records.iter().any(|(walked_range, _)| walked_range == range),
                "the sound record at {range:?} is lost"
            );
        }
    }
}

fn check(whole: &Log, harmed: &Log) -> Walked {
    let dir = tempfile::tempdir().expect("a directory");
    harmed.write(dir.path());
    let walked = walk(dir.path(), Io::Pread);
    check_cover(harmed, &walked);
    check_records(whole, harmed, &walked);
    for io in [Io::Mmap, Io::Auto] {
        let mapped = walk(dir.path(), io);
        assert_eq!((mapped.records, &mapped.damage), (walked.records.clone(), &walked.damage), "{io:?}");
    }
    walked
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_walk_over_damage_gives_all_that_is_sound_and_tells_the_rest(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..900), 1..30),
        harms in prop::collection::vec(harms(), 0..6),
    ) {
        let whole = Log::of(&bodies);
        let mut harmed = whole.clone();
        for harm in &harms {
            if !harmed.files.is_empty() {
                harm.apply(&mut harmed);
            }
        }
        harmed.files.retain(|_, file| !file.is_empty());
        check(&whole, &harmed);
    }
}

fn some_bodies() -> Vec<Vec<u8>> {
    (0..60_usize).map(|n| (0..n * 37 % 91).map(|i| (i * 31 + n) as u8).collect()).collect()
}

/// In threads, as a torn end is looked at several times, with waits.
#[test]
fn a_log_cut_at_any_byte_of_its_last_records_has_all_records_before_the_cut() {
    let whole = Log::of(&some_bodies());
    let [first, .., last] = &whole.records[whole.records.len() - 3..] else { panic!("three records") };
    let cuts: Vec<_> = (first.start..=last.end).flat_map(|cut| [None, Some(0), Some(0xA5)].map(|f| (cut, f))).collect();
    std::thread::scope(|scope| {
        for part in cuts.chunks(cuts.len().div_ceil(16)) {
            scope.spawn(|| part.iter().for_each(|(cut, fill)| check_cut(&whole, *cut, *fill)));
        }
    });
}

fn check_cut(whole: &Log, cut: u64, fill: Option<u8>) {
    let mut harmed = whole.clone();
    let (start, file) = harmed.files.range_mut(..=cut).next_back().expect("a file");
    file.truncate((cut - start) as usize);
    if let Some(byte) = fill {
        file.resize(FILE, byte);
    }
    harmed.files.retain(|_, file| !file.is_empty());
    let kept = check(whole, &harmed).records.len();
    // Nothing protects the text of properties: filled up, it is as good as any.
    let unprotected = if fill.is_some() { PROPERTIES.len() as u64 } else { 0 };
    let expected = whole.records.iter().filter(|record| record.end - unprotected <= cut).count();
    assert_eq!(kept, expected, "cut at {cut}, filled with {fill:?}");
}

/// Bytes of a record that nothing checks: queue, flag, queue offset, part of the system flag, times, hosts, counters, the
/// topic's name and the properties' text. `docs/damage.md` lists them.
fn is_unprotected(record: &[u8], at: usize) -> bool {
    let body_len = u32::from_be_bytes(record[84..88].try_into().expect("4 bytes")) as usize;
    let topic = 88 + body_len;
    let properties = topic + 1 + usize::from(record[topic]);
    matches!(at, 12..28 | 36..84) || (topic + 1..properties).contains(&at) || at >= properties + 2
}

#[test]
fn a_flipped_bit_is_found_or_lies_where_nothing_can_find_it() {
    let whole = Log::of(&some_bodies());
    let dir = tempfile::tempdir().expect("a directory");
    whole.write(dir.path());
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let flips = std::env::var("RMQFAST_FLIPS").map_or(4000, |n| n.parse().expect("a number"));
    for _ in 0..flips {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let record = &whole.records[(seed >> 33) as usize % whole.records.len()];
        let at = record.start + (seed >> 17) % (record.end - record.start);
        check_flip(&whole, dir.path(), record, at, (seed >> 60) as u8 % 8);
    }
}

fn check_flip(whole: &Log, directory: &Path, record: &Range<u64>, at: u64, bit: u8) {
    let (start, file) = whole.files.range(..=at).next_back().expect("a file");
    let mut flipped = file.clone();
    flipped[(at - start) as usize] ^= 1 << bit;
    let path = directory.join(format!("{start:020}"));
    fs::write(&path, &flipped).expect("written");
    let walked = walk(directory, Io::Pread);
    fs::write(&path, file).expect("written");
    let others = whole.records.iter().filter(|other| *other != record);
    let ranges: Vec<_> = walked.records.iter().map(|(range, _)| range.clone()).collect();
    assert!(others.into_iter().all(|other| ranges.contains(other)), "the flip at {at} bit {bit} took another record");
    let stored = whole.bytes(record.clone()).expect("whole");
    match walked.damage.as_slice() {
        [] => assert!(is_unprotected(stored, (at - record.start) as usize), "the flip at {at} bit {bit} is not found"),
        [damage] => assert_eq!(damage, record),
        many => panic!("the flip at {at} bit {bit} is told {} times", many.len()),
    }
}
