//! Every row of `tests/golden/spark-requests.jsonl.gz`: what the options of Spark's reads and of its sink meant before this crate
//! read them.
use flate2::read::GzDecoder;
use rmqfast_client::cluster::Bounds as QueueBounds;
use rmqfast_client::puller::Queue;
use rmqfast_client::ranges::QueueRange;
use rmqfast_spark::Result;
use rmqfast_spark::origin::piece::TopicPiece;
use rmqfast_spark::request::offsets::{Bounds, Queues, StoreOffsets};
use rmqfast_spark::request::options::{Kind, Options, Value};
use rmqfast_spark::topic::offsets::{self, Edge};
use rmqfast_spark::topic::topics::Topics;
use serde_json::{Map, Value as Json, json};
use std::fs::File;
use std::io::{BufRead, BufReader};

#[test]
fn each_text_means_what_it_meant() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/spark-requests.jsonl.gz");
    let file = GzDecoder::new(File::open(path).expect("the golden file"));
    let lines = BufReader::new(file).lines().map(|line| line.expect("a line"));
    let mut rows = lines.map(|line| serde_json::from_str::<Json>(&line).expect("JSON"));
    let facts = rows.next().expect("the first line");
    let (mut count, mut differ) = (0, Vec::new());
    for row in rows {
        let kind = row["kind"].as_str().expect("a kind");
        let got = match given(kind, row["options"].as_object().expect("options"), &facts) {
            Ok(gives) => json!({ "gives": gives }),
            Err(error) => json!({ "error": [error.class(), error.to_string()] }),
        };
        let wanted = match row.get("error") {
            Some(error) => json!({ "error": error }),
            None => json!({ "gives": row["gives"] }),
        };
        count += 1;
        if got != wanted {
            differ.push(format!("{kind} {}\n  wanted {wanted}\n  got    {got}", row["options"]));
        }
    }
    assert!(count > 4000, "only {count} rows");
    assert!(differ.is_empty(), "{} of {count} differ:\n{}", differ.len(), differ.join("\n"));
}

fn given(kind: &str, pairs: &Map<String, Json>, facts: &Json) -> Result<Json> {
    let pairs: Vec<_> =
        pairs.iter().map(|(name, text)| (name.clone(), text.as_str().expect("a text").to_owned())).collect();
    let options = Options::of(Kind::of_name(kind)?, &pairs)?;
    let usual = &facts["usual"][kind];
    let values = options.values().map(|(argument, value)| (argument.to_owned(), value.map_or(Json::Null, shown)));
    let values: Map<String, Json> = values.filter(|(argument, value)| usual[argument] != *value).collect();
    let mut gives = json!({ "values": values });
    match kind {
        "store batch" => {
            let offsets = StoreOffsets::of(&options)?;
            let whole = (Bounds::new(), Bounds::new());
            let (start, end) = if offsets.are_whole() { whole } else { offsets.bounds(&store_queues(facts))? };
            (gives["start_offset"], gives["end_offset"]) = (by_text(&start), by_text(&end));
        }
        "store stream" => gives["begin"] = options.begin().into(),
        "topic batch" => {
            gives["start"] = resolved(&options, "startingOffsets", "earliest", Edge::Start, facts)?;
            gives["end"] = resolved(&options, "endingOffsets", "latest", Edge::End, facts)?;
            gives["pieces"] = pieces(&options, &gives, facts)?;
        }
        "topic stream" => gives["start"] = resolved(&options, "startingOffsets", "latest", Edge::Start, facts)?,
        _ => {}
    }
    Ok(gives)
}

fn shown(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Flag(flag) => json!(flag),
        Value::Number(number) | Value::Time(number) => json!(number),
        Value::Texts(texts) => json!(texts),
        Value::Ids(ids) => json!(ids),
    }
}

fn resolved(options: &Options, name: &str, usual: &str, edge: Edge, facts: &Json) -> Result<Json> {
    let topics = Topics::of(options)?;
    let is_of_time = name == "startingOffsets" && options.number("startingTimestamp").is_some();
    let usual = if is_of_time { "earliest" } else { usual };
    let offsets = offsets::parse(name, options.text(name).unwrap_or(usual), &topics)?;
    // both texts are read before any queue is looked at
    offsets::parse("endingOffsets", options.text("endingOffsets").unwrap_or_default(), &topics)?;
    let queues = topic_queues(&topics, facts);
    let (found, _) = offsets::resolve(name, &offsets, &queues, edge, options.flag("failOnDataLoss"))?;
    let mut by_topic = json!({});
    for ((Queue { topic, broker_name, queue_id }, _), offset) in queues.iter().zip(found) {
        by_topic[topic][&**broker_name][queue_id.to_string()] = json!(offset);
    }
    Ok(by_topic)
}

fn pieces(options: &Options, gives: &Json, facts: &Json) -> Result<Json> {
    let topics = Topics::of(options)?;
    let offset = |edge: &str, queue: &Queue| {
        gives[edge][&queue.topic][&*queue.broker_name][queue.queue_id.to_string()].as_i64().expect("an offset")
    };
    let is_read = |queue: &Queue| options.ids("queueIds").is_none_or(|ids| ids.contains(&queue.queue_id));
    let mut queues: Vec<Queue> = topic_queues(&topics, facts).into_iter().map(|(queue, _)| queue).collect();
    topics.keep(&mut queues, true)?;
    let ranges = queues.into_iter().filter(is_read).map(|queue| {
        let (start, end) = (offset("start", &queue), offset("end", &queue));
        QueueRange { queue, start, end }
    });
    let number = |name| options.number(name);
    let (most, least) = (number("maxRowsPerPartition").unwrap_or_default(), number("minPartitions").unwrap_or(1));
    let address = |broker: &str| facts["addresses"].get(broker).and_then(Json::as_str).map(str::to_owned);
    Ok(TopicPiece::cut(ranges.collect(), most, least, address)?.iter().map(|piece| json!(piece.to_parts())).collect())
}

fn store_queues(facts: &Json) -> Queues {
    queues(&facts["queues"]["store"]).into_iter().map(|(id, first, last)| (id, (first, last))).collect()
}

/// Each topic that is read has the same queues.
fn topic_queues(topics: &Topics, facts: &Json) -> Vec<(Queue, QueueBounds)> {
    let all = facts["topics"].as_array().expect("topics").iter().filter_map(Json::as_str);
    let names = topics.names().unwrap_or_else(|| all.filter(|name| topics.has(name)).map(str::to_owned).collect());
    let brokers = facts["queues"]["topic"].as_object().expect("brokers");
    let of_topic = |topic: &str| {
        let of_broker = |(broker, by_id): (&String, &Json)| {
            let queue = |queue_id| Queue { topic: topic.to_owned(), broker_name: broker.as_str().into(), queue_id };
            queues(by_id).into_iter().map(|(id, first, last)| (queue(id), (first, last))).collect::<Vec<_>>()
        };
        brokers.iter().flat_map(of_broker).collect::<Vec<_>>()
    };
    names.iter().flat_map(|topic| of_topic(topic)).collect()
}

fn queues(by_id: &Json) -> Vec<(i32, i64, i64)> {
    let number = |value: &Json| value.as_i64().expect("a number");
    let by_id = by_id.as_object().expect("queues");
    by_id.iter().map(|(id, b)| (id.parse().expect("an id"), number(&b[0]), number(&b[1]))).collect()
}

fn by_text(bounds: &Bounds) -> Json {
    let by_text: Map<String, Json> = bounds.iter().map(|(id, offset)| (id.to_string(), json!(offset))).collect();
    if by_text.is_empty() { Json::Null } else { Json::Object(by_text) }
}
