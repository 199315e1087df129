//! Tasks over logs that were written for them: what they give, what bounds their memory, and what ends them.
use rmqfast_jvm::store_task::StoreTask;
use rmqfast_jvm::task::{Failure, Task};
use rmqfast_spark::request::row_columns::RowColumns;
use rmqfast_spark::store::stores_read::StoresRead;
use rmqfast_spark::{Kind, Options, Pairs};
use rmqfast_store::format::compression::{Compression, compress};
use rmqfast_store::format::host::Host;
use rmqfast_store::format::message::NewMessage;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A store of one file, 4 MiB, filled with messages of `body`.
fn store(directory: &Path, body: &[u8], sys_flag: i32) -> (PathBuf, u64) {
    const LEN: usize = 4 << 20;
    let host = Host::decode(&[127, 0, 0, 1, 0, 0, 0x2A, 0x9F]).expect("a host");
    let mut log = Vec::new();
    let mut rows = 0;
    while log.len() + body.len() + 200 < LEN {
        let message = NewMessage {
            queue_id: 0,
            flag: 0,
            queue_offset: rows,
            physical_offset: log.len() as i64,
            sys_flag,
            born_timestamp: 1,
            born_host: host,
            store_timestamp: 2,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body,
            topic: "T",
            properties: b"TAGS\x01a",
        };
        message.encode(&mut log).expect("fits");
        rows += 1;
    }
    log.resize(LEN, 0);
    fs::create_dir(directory.join("commitlog")).expect("made");
    let file = directory.join("commitlog").join(format!("{:020}", 0));
    fs::write(&file, log).expect("written");
    (file, rows as u64)
}

fn task(directory: &Path, more: &[(&str, &str)], limit: u64) -> StoreTask {
    let mut pairs: Pairs = vec![("path".to_owned(), directory.to_string_lossy().into_owned())];
    pairs.extend(more.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
    let options = Options::of(Kind::Columnar, &pairs).expect("options");
    let types = RowColumns::of_options(&options).and_then(|row| row.types()).expect("columns");
    let fields: Vec<String> =
        types.into_iter().flat_map(|(name, kind)| [name.to_owned(), kind, "true".to_owned()]).collect();
    let pieces = StoresRead::of(&pairs, &fields, &[]).and_then(|read| read.partitions(1)).expect("a plan");
    assert_eq!(pieces.len(), 1);
    let read = StoresRead::read_of(&pieces[0], &pairs, &fields, &[]).expect("a read");
    StoreTask::open(read, pieces[0].piece, limit).expect("opens")
}

/// Rows of each batch.
fn batches(task: &mut StoreTask) -> Result<Vec<usize>, Failure> {
    std::iter::from_fn(|| task.advance(Duration::ZERO).transpose()).collect()
}

#[test]
fn batches_have_about_a_mebibyte_and_together_every_row() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_, rows) = store(directory.path(), &[b'x'; 1000], 0);
    let found = batches(&mut task(directory.path(), &[], u64::MAX)).expect("reads");
    assert_eq!(found.iter().sum::<usize>() as u64, rows);
    assert_eq!(found.len(), 4, "four whole blocks, of which each begins with what the one before left");
}

#[test]
fn a_limit_ends_the_task_with_its_row() {
    let directory = tempfile::tempdir().expect("a directory");
    store(directory.path(), b"body", 0);
    let mut task = task(directory.path(), &[], 7);
    assert_eq!(batches(&mut task).expect("reads"), [7]);
    assert_eq!(task.advance(Duration::ZERO).expect("is over"), None);
}

#[test]
fn a_file_that_is_truncated_while_it_is_read_ends_the_task() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, rows) = store(directory.path(), &[b'x'; 1000], 0);
    let mut strict = task(directory.path(), &[], u64::MAX);
    let mut lenient = task(directory.path(), &[("failOnDataLoss", "false")], u64::MAX);
    let first = strict.advance(Duration::ZERO).expect("reads").expect("rows");
    assert_eq!(lenient.advance(Duration::ZERO).expect("reads"), Some(first));
    OpenOptions::new().write(true).open(&file).expect("opens").set_len(1_500_000).expect("truncates");
    let failure = batches(&mut strict).expect_err("the rest is gone");
    assert_eq!(failure.kind, "CorruptError");
    assert!(failure.text.contains("expected a file of 4194304 bytes, got 1500000"), "{failure}");
    let left: usize = batches(&mut lenient).expect("reads what is left").iter().sum();
    assert!(((first + left) as u64) < rows);
    let warning = lenient.take_warning(false).expect("told");
    assert!(warning.contains("commit log 0 to 4194304: 1 damaged places"), "{warning}");
    assert_eq!(lenient.take_warning(false), None);
}

#[test]
fn bodies_that_grow_end_a_batch_before_it_takes_much_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let body = compress(Compression::Zlib, &vec![b'x'; 1 << 20], 9);
    let (_, rows) = store(directory.path(), &body, Compression::Zlib.sys_flag());
    let found = batches(&mut task(directory.path(), &[], 100)).expect("reads");
    assert!(rows > 1000, "{rows}");
    assert_eq!(found, vec![4; 25]);
}

#[test]
fn what_was_planned_and_is_gone_is_missed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, _) = store(directory.path(), b"body", 0);
    fs::rename(&file, file.with_file_name(format!("{:020}", 4 << 20))).expect("renamed");
    let range = [("logStart", "0"), ("logEnd", "4194304")];
    let failure = batches(&mut task(directory.path(), &range, u64::MAX)).expect_err("all of it is gone");
    assert!(
        failure.text.contains("at offset 0, 4194304 bytes: the log held this when the read was planned"),
        "{failure}"
    );
}

#[test]
fn bodies_that_cannot_be_decoded_are_counted_and_told_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_, rows) = store(directory.path(), &[b'x'; 1000], 0);
    let json = [("decode", "json"), ("valueSchema", "a int")];
    let mut lenient = task(directory.path(), &json, u64::MAX);
    assert_eq!(batches(&mut lenient).expect("reads").iter().sum::<usize>() as u64, rows);
    assert_eq!((lenient.bad_bodies(), lenient.take_warning(false)), (rows, None));
    let warning = lenient.take_warning(true).expect("told");
    let place = "body of message 0 of queue 0 of topic T: expected a JSON object at byte 0, got 'x'";
    assert!(warning.starts_with(&format!("{rows} bodies cannot be decoded, the first: {place}")), "{warning}");
    assert_eq!(lenient.take_warning(true), None);
    let mut strict = task(directory.path(), &[&json[..], &[("onDecodeError", "fail")]].concat(), u64::MAX);
    let failure = batches(&mut strict).expect_err("a bad body");
    assert_eq!((failure.kind, strict.take_warning(true)), ("DecodeError", None));
    assert!(failure.text.starts_with(place), "{failure}");
}

#[test]
fn bodies_that_decode_to_much_end_a_batch_before_it_takes_much_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let body = format!("{{\"a\":[{}1]}}", "1,".repeat(20_000));
    store(directory.path(), body.as_bytes(), 0);
    let found = batches(&mut task(directory.path(), &[("decode", "json"), ("valueSchema", "a array<int>")], 30));
    // each takes 20,001 values of 32 bytes, and a block has 26 of them
    assert!(found.expect("reads").iter().all(|rows| *rows <= 14));
}
