//! A pull of 32 messages of 1 KiB from a store that is open for appending.
use criterion::{Criterion, Throughput};
use rmqfast_micro::{TAG, TOPIC};
use rmqfast_store::store::GetLimits;
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_store::store::serve::{Every, PullFilter, TagCodes};
use std::hint::black_box;

const PULLED: usize = 32;
const MESSAGES: i64 = 64 * PULLED as i64;

fn message() -> OwnedMessage {
    OwnedMessage { topic: TOPIC.into(), body: vec![7; 1024], tags: Some(TAG.into()), ..OwnedMessage::default() }
}

pub fn benches(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let options =
        AppendOptions { file_size: 16 << 20, index_slots: 1 << 10, index_entries: 1 << 12, ..AppendOptions::default() };
    let appender = Appender::open(&directory.path().join("store"), options).expect("a new store");
    appender.append(&Messages::new(vec![message(); MESSAGES as usize]), None, 0).expect("appended");
    let live = appender.live();
    let queue = live.queue(TOPIC, 0).expect("a queue");
    let limits = GetLimits::of_broker(8 << 30);
    let codes = TagCodes::new([rmqfast_store::format::java::tags_code(Some(TAG)) as i32]);
    let mut group = criterion.benchmark_group("serve");
    group.throughput(Throughput::Elements(PULLED as u64));
    for (name, filter) in [("get_message, all", &Every as &dyn PullFilter), ("get_message, by tag", &codes)] {
        let (mut out, mut offset) = (Vec::new(), 0);
        group.bench_function(name, |b| {
            b.iter(|| {
                out.clear();
                let pulled = live.get_message(&queue, offset, PULLED, filter, limits, &mut out).expect("read");
                assert_eq!(pulled.messages, PULLED);
                offset = pulled.next_begin_offset % MESSAGES;
                black_box(&out);
            });
        });
    }
    group.throughput(Throughput::Elements(1));
    group.bench_function("queue by name", |b| b.iter(|| live.queue(black_box(TOPIC), 0)));
    group.finish();
}
