//! Records in memory: their lengths, and the three properties that have columns of their own.
use criterion::{Criterion, Throughput};
use rmqfast_micro as made_up;
use rmqfast_store::format::host::Host;
use rmqfast_store::format::message::{Item, Layout, NewMessage};
use rmqfast_store::format::properties;
use rmqfast_store::scan::row::Row;
use std::hint::black_box;

const RECORDS: usize = 1000;

pub fn benches(criterion: &mut Criterion) {
    let log = log();
    let rows = rows(&log);
    assert_eq!(rows.len(), RECORDS);
    let mut group = criterion.benchmark_group("format");
    group.throughput(Throughput::Elements(RECORDS as u64));
    group.bench_function("decode the layout of a record", |b| b.iter(|| rows_of(black_box(&log)).count()));
    group.bench_function("find the properties of a record", |b| b.iter(|| find_all(black_box(&log), &rows)));
    group.finish();
}

fn rows(log: &[u8]) -> Vec<Row> {
    rows_of(log).collect()
}

fn rows_of(log: &[u8]) -> impl Iterator<Item = Row> {
    let mut at = 0;
    std::iter::from_fn(move || match Layout::decode(&log[at..]) {
        Ok(Item::Message(layout)) => {
            let row = Row::new(at as u32, layout);
            at += layout.total as usize;
            Some(row)
        }
        _ => None,
    })
}

fn find_all(log: &[u8], rows: &[Row]) {
    for row in rows {
        let mut row = *row;
        row.find_properties(log);
        assert!(black_box(row).keys.len > 0);
    }
}

fn log() -> Vec<u8> {
    log_of(RECORDS, made_up::body)
}

/// Records one after the other, with the properties that a producer's client gives.
pub fn log_of(records: usize, body: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut log = Vec::new();
    for n in 0..records {
        let (body, properties) = (body(n), properties_of(n));
        let record = record(n, log.len(), &body, &properties);
        record.encode(&mut log).expect("lengths that fit");
    }
    log
}

fn properties_of(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    properties::push(&mut out, properties::KEYS, &made_up::key(n));
    properties::push(&mut out, properties::UNIQ_KEY, &format!("7F00000100005212{n:016X}"));
    properties::push(&mut out, "WAIT", "true");
    properties::push(&mut out, properties::TAGS, &made_up::tag(n));
    out
}

fn record<'a>(n: usize, position: usize, body: &'a [u8], properties: &'a [u8]) -> NewMessage<'a> {
    let host = Host::from(std::net::SocketAddr::from(([127, 0, 0, 1], 10_911)));
    NewMessage {
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
        topic: made_up::TOPIC,
        properties,
    }
}
