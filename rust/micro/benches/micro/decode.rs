//! Bodies of 1 KiB of JSON: a scan that decodes them, and arrow-json alone over the same bytes in memory.
use arrow_json::ReaderBuilder;
use arrow_schema::{Fields, Schema};
use criterion::{Criterion, Throughput};
use rmqfast_micro::{self as made_up, TOPIC};
use rmqfast_store::scan::decode::{Decode, Framing, Json, ddl};
use rmqfast_store::scan::{Column, Plan, ScanRequest, Scanner, Way};
use rmqfast_store::store::MessageStore;
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

const MESSAGES: usize = 20_000;
const BATCH: usize = 1024;
const BODY: usize = 1024;
const ALL: &str = "id bigint, state string, at string, total double, paid boolean, note string, customer struct<id: string, city: string, \
                   points: bigint>, lines array<struct<sku: string, n: int, price: double>>, tags array<string>, padding string";
const THREE: [&str; 3] = ["id", "total", "customer.city"];

pub fn benches(criterion: &mut Criterion) {
    let bodies: Vec<Vec<u8>> = (0..MESSAGES).map(body).collect();
    let (_directory, store) = made_up::store_of(MESSAGES, |n| bodies[n].clone());
    let all = ddl::parse(ALL).expect("fields");
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(MESSAGES as u64));
    for (name, paths) in [("all fields", None), ("three fields", Some(THREE.map(str::to_owned).to_vec()))] {
        let format = Json::new(&all, paths.as_deref()).expect("a format");
        let fields = rmqfast_store::scan::decode::fields::select(&all, paths.as_deref()).expect("fields");
        group.bench_function(format!("arrow-json from memory, {name}"), |b| {
            b.iter(|| assert_eq!(arrow_json_rows(&bodies, &fields), MESSAGES));
        });
        let decode = Decode {
            format: Arc::new(format),
            framing: Framing::None,
            schema_id: None,
            fails: true,
            lists_all: false,
            at: None,
        };
        let request = |decode, columns| {
            Arc::new(ScanRequest { topic: Some(TOPIC.into()), columns, decode, ..ScanRequest::default() })
        };
        let decoded = request(Some(decode), Vec::new());
        group.bench_function(format!("scan, {name}"), |b| b.iter(|| assert_eq!(rows(&store, &decoded), MESSAGES)));
        let plain = request(None, vec![Column::Body]);
        group.bench_function(format!("scan of bodies, beside {name}"), |b| {
            b.iter(|| assert_eq!(rows(&store, &plain), MESSAGES));
        });
    }
    group.finish();
}

/// Returns an order of ten fields with six lines, filled up to the length of a body.
fn body(n: usize) -> Vec<u8> {
    let mut text = format!(
        r#"{{"id":{n},"state":"PAID","at":"2026-11-29T12:00:00Z","total":{}.25,"paid":true,"note":null,"#,
        n % 1000
    );
    let _ = write!(text, r#""customer":{{"id":"c-{}","city":"Zürich","points":{}}},"lines":["#, n % 97, n % 13);
    for line in 0..6 {
        let comma = if line > 0 { "," } else { "" };
        let _ = write!(text, r#"{comma}{{"sku":"sku-{:05}","n":{line},"price":{}.5}}"#, n * 7 % 99_991, line * 3);
    }
    let padding = BODY.saturating_sub(text.len() + 43);
    let _ = write!(text, r#"],"tags":["new","web"],"padding":"{}"}}"#, "x".repeat(padding));
    text.into_bytes()
}

fn arrow_json_rows(bodies: &[Vec<u8>], fields: &Fields) -> usize {
    let schema = Arc::new(Schema::new(fields.clone()));
    let mut decoder = ReaderBuilder::new(schema).with_batch_size(BATCH).build_decoder().expect("a decoder");
    let mut rows = 0;
    for batch in bodies.chunks(BATCH) {
        for body in batch {
            assert_eq!(decoder.decode(body).expect("JSON"), body.len());
        }
        rows += black_box(decoder.flush().expect("decoded")).map_or(0, |batch| batch.num_rows());
    }
    rows
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
