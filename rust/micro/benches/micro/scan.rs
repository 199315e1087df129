//! A store's queue entries by tag hash, and its log as Arrow batches; the files are in the page cache.
use criterion::{Criterion, Throughput};
use rmqfast_micro::{self as made_up, TAG, TAGS, TOPIC};
use rmqfast_store::filter::TagExpression;
use rmqfast_store::scan::queue_walk::HitCollector;
use rmqfast_store::scan::{Column, Plan, ScanRequest, Scanner, Way};
use rmqfast_store::store::MessageStore;
use rmqfast_store::store::commit_log::DamageLog;
use std::hint::black_box;
use std::sync::Arc;

const MESSAGES: usize = 100_000;
const NARROW: [Column; 3] = [Column::QueueId, Column::QueueOffset, Column::StoreTimestamp];

pub fn benches(criterion: &mut Criterion) {
    let (_directory, store) = made_up::store(MESSAGES);
    let of_tag = request(&[Column::QueueOffset], TAG);
    let plan = Plan::new(&store, &of_tag, Some(Way::Queue)).expect("planned");
    let mut group = criterion.benchmark_group("scan");
    group.throughput(Throughput::Elements(MESSAGES as u64));
    group.bench_function("queue entries by tag hash", |b| {
        b.iter(|| assert_eq!(hits(&plan, &of_tag), MESSAGES / TAGS));
    });
    for (name, columns) in [("log to arrow, all columns", &Column::ALL[..]), ("log to arrow, narrow", &NARROW)] {
        let request = request(columns, "*");
        group.bench_function(name, |b| b.iter(|| assert_eq!(rows(&store, &request), MESSAGES)));
    }
    group.finish();
}

fn request(columns: &[Column], tags: &str) -> Arc<ScanRequest> {
    let tags = TagExpression::parse(tags).expect("a tag");
    Arc::new(ScanRequest { topic: Some(TOPIC.into()), tags, columns: columns.to_vec(), ..ScanRequest::default() })
}

fn hits(plan: &Plan, request: &Arc<ScanRequest>) -> usize {
    let (log, queues) = (&plan.sources.log, plan.sources.queues.clone());
    let mut collector = HitCollector::new(queues, request.clone(), (0, u64::MAX), log).expect("read");
    let (mut count, mut hits, mut damage) = (0, Vec::new(), DamageLog::default());
    while collector.next_stretch(&mut hits, &mut damage).expect("read") {
        count += black_box(&hits).len();
    }
    count
}

fn rows(store: &MessageStore, request: &Arc<ScanRequest>) -> usize {
    let plan = Plan::new(store, request, Some(Way::Log)).expect("planned");
    let mut scanner = Scanner::new(plan.sources, request.clone(), plan.pieces);
    let mut rows = 0;
    while let Some(batch) = scanner.next_batch(&mut || Ok(())).expect("read") {
        rows += black_box(&batch).num_rows();
    }
    rows
}
