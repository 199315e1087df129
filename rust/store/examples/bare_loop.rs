//! The ceilings of a scan, and the scan itself, over one store directory: JSON lines {"name", "rows", "seconds"}.
//!
//! `cargo run --release -p rmqfast-store --example bare_loop -- DIR [TOPIC] [TAG] [REPEAT] [ONLY]`
//!
//! The bare loop maps the log, prefetches 3 KiB ahead of its position, reads the lengths and the three properties of each
//! record and copies body, topic, tags and keys into buffers that it uses again and again: what a scan cannot do without.
use rmqfast_store::file::{Io, Segment, Segments, mmap};
use rmqfast_store::filter::TagExpression;
use rmqfast_store::format::message::{Item, Layout};
use rmqfast_store::scan::row::Row;
use rmqfast_store::scan::{Column, Plan, Scan, ScanRequest, Way};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The ways to read: a system call for each block, maps under leases, maps that are kept.
const WAYS: [Io; 3] = [Io::Pread, Io::Auto, Io::Mmap];

/// The columns that the benchmarks and README ask for.
const EIGHT: [Column; 8] = [
    Column::Topic,
    Column::QueueId,
    Column::QueueOffset,
    Column::Tags,
    Column::Keys,
    Column::Body,
    Column::MsgId,
    Column::StoreTimestamp,
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(dir) = args.first().map(PathBuf::from) else { return Err("DIR [TOPIC] [TAG] [REPEAT] [ONLY]".into()) };
    let topic = args.get(1).map_or("bench_topic", String::as_str);
    let tag = args.get(2).map_or("tag07", String::as_str);
    let repeat: usize = args.get(3).map_or(Ok(5), |n| n.parse())?;
    let stores = WAYS.map(|io| open(&dir, io));
    let maps = maps(&dir)?;
    for _ in 0..repeat {
        report("memcpy", || Ok(copy(&maps)))?;
        report("bare loop", || Ok(bare(&maps, true)))?;
        report("bare loop, heads only", || Ok(bare(&maps, false)))?;
        for (io, store) in WAYS.into_iter().zip(&stores) {
            let store = store.as_ref().map_err(ToString::to_string)?;
            let wide = || all_but(&[Column::Properties]);
            let head = || all_but(&[Column::Properties, Column::Body, Column::Tags, Column::Keys, Column::MsgId]);
            let name = |what: &str| format!("{what}, {io:?}").to_lowercase();
            report(&name("scan"), || scan(store, request(None, "*", wide())?, None))?;
            report(&name("scan of all columns"), || scan(store, request(None, "*", all_but(&[]))?, None))?;
            report(&name("scan of eight columns"), || scan(store, request(None, "*", EIGHT.to_vec())?, None))?;
            let checked =
                || Ok::<_, rmqfast_store::Error>(ScanRequest { verify_crc: true, ..request(None, "*", wide())? });
            report(&name("scan with crc"), || scan(store, checked()?, None))?;
            report(&name("scan without body"), || scan(store, request(None, "*", head())?, None))?;
            report(&name("tag scan by queue"), || scan(store, request(Some(topic), tag, wide())?, Some(Way::Queue)))?;
            report(&name("topic scan by queue"), || scan(store, request(Some(topic), "*", wide())?, Some(Way::Queue)))?;
        }
    }
    Ok(())
}

fn report(name: &str, run: impl FnOnce() -> rmqfast_store::Result<u64>) -> rmqfast_store::Result<()> {
    if std::env::args().nth(5).is_some_and(|only| only.split(';').all(|only| only != name)) {
        return Ok(());
    }
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let rows = run()?;
    println!(
        r#"{{"name": "{name}", "rows": {rows}, "seconds": {:.6}, "cpu": {:.6}}}"#,
        start.elapsed().as_secs_f64(),
        cpu_seconds() - cpu
    );
    Ok(())
}

/// CPU seconds of this thread, which other processes of a busy machine do not lengthen; 0 where Linux does not tell.
fn cpu_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

fn all_but(left_out: &[Column]) -> Vec<Column> {
    Column::ALL.into_iter().filter(|c| !left_out.contains(c)).collect()
}

fn request(topic: Option<&str>, tags: &str, columns: Vec<Column>) -> rmqfast_store::Result<ScanRequest> {
    let tags = TagExpression::parse(tags)?;
    Ok(ScanRequest { topic: topic.map(str::to_owned), tags, columns, ..ScanRequest::default() })
}

fn open(dir: &Path, io: Io) -> rmqfast_store::Result<MessageStore> {
    MessageStore::open(dir, &OpenOptions { io, ..OpenOptions::default() })
}

fn scan(store: &MessageStore, request: ScanRequest, way: Option<Way>) -> rmqfast_store::Result<u64> {
    let plan = Plan::new(store, &request, way)?;
    let mut scan = Scan::new(plan.sources, Arc::new(request), plan.pieces, 1);
    let mut rows = 0;
    while let Some(batch) = scan.next_batch(&mut || Ok(()))? {
        rows += batch.num_rows() as u64;
        black_box(&batch);
    }
    Ok(rows)
}

fn maps(dir: &Path) -> rmqfast_store::Result<Vec<Segment>> {
    let segments = Segments::list(&[dir.join("commitlog")])?;
    (0..segments.files().len()).map(|i| segments.open(i, Io::Mmap)).collect()
}

fn copy(maps: &[Segment]) -> u64 {
    let mut out = vec![0_u8; 1 << 20];
    let mut bytes = 0;
    for segment in maps {
        for block in segment.map().unwrap_or_default().chunks_exact(out.len()) {
            out.copy_from_slice(block);
            bytes += black_box(&out).len() as u64;
        }
    }
    bytes
}

fn bare(maps: &[Segment], with_body: bool) -> u64 {
    const AHEAD: usize = 3 << 10;
    const KEPT: usize = 2 << 20;
    let mut rows = 0;
    let mut out: Vec<u8> = Vec::with_capacity(KEPT + (1 << 16));
    for segment in maps {
        let bytes = segment.map().unwrap_or_default();
        let mut at = 0;
        while let Ok(Item::Message(layout)) = Layout::decode(&bytes[at..]) {
            let next = at + layout.total as usize;
            (at + AHEAD..next + AHEAD).step_by(64).for_each(|line| mmap::prefetch(bytes, line));
            if with_body {
                let mut row = Row::new(at as u32, layout);
                row.find_properties(bytes);
                let Some(message) = row.message(bytes) else { break };
                if out.len() + layout.total as usize > KEPT {
                    black_box(&out);
                    out.clear();
                }
                out.extend_from_slice(message.body());
                out.extend_from_slice(message.topic());
                out.extend_from_slice(row.tags.of(bytes).unwrap_or_default());
                out.extend_from_slice(row.keys.of(bytes).unwrap_or_default());
                black_box((message.queue_offset(), message.store_timestamp(), message.born_timestamp()));
            }
            rows += 1;
            at = next;
        }
    }
    rows
}
