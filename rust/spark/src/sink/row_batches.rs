//! Collects rows into requests, separately for each target. The rows of a target keep their order.
use super::block::Block;
use super::columns::SinkColumn;
use super::options::SinkOptions;
use super::row::{Keys, Row};
use rmqfast_client::send::{Batch, BatchOptions, Properties, UniqueIds, compressed};
use std::collections::HashMap;
use std::sync::Arc;

/// A body that is sent alone is compressed if it has at least this size. Same as Java's default
/// `compressMsgBodyOverHowmuch`.
const COMPRESS_OVER: usize = 4096;

/// The destination and delay of rows. If broker or queue is `None`, the sink chooses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Topic without its namespace.
    pub topic: Option<String>,
    pub broker_name: Option<String>,
    pub queue_id: Option<i64>,
    /// 0 delivers at once.
    pub delay_level: i64,
}

/// The location of a row in its block.
#[derive(Clone, Debug)]
pub struct RowPlace {
    pub block: Arc<Block>,
    /// Position of the row in the block; see [`Block::row`].
    pub at: usize,
    /// Number of the row in its partition, starting with 0.
    pub number: u64,
}

impl RowPlace {
    /// Reads the row from its block again.
    pub fn row(&self, columns: &[SinkColumn]) -> Row<'_> {
        // never fails, since the row was read before
        self.block.row(columns, self.at).map(|(row, _)| row).unwrap_or_default()
    }
}

/// A request for which no queue is chosen yet.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub body: Vec<u8>,
    pub properties: String,
    pub sys_flag: i32,
    /// The application's 32-bit flag.
    pub flag: i32,
    pub born_timestamp: i64,
    /// Whether the body holds a batch of messages.
    pub is_batch: bool,
}

/// Rows of one target, and the request that contains them.
#[derive(Clone, Debug)]
pub struct Parcel {
    pub target: Arc<Target>,
    /// The rows, to name them in errors and to split the request.
    pub rows: Vec<RowPlace>,
    pub request: Request,
}

#[derive(Clone, Debug)]
pub struct WrongRow {
    pub target: Arc<Target>,
    pub place: RowPlace,
    pub text: String,
}

/// Collects rows of each target until a request is full.
pub struct RowBatches<'a> {
    options: &'a SinkOptions,
    batch_options: BatchOptions<'a>,
    has_targets: bool,
    /// Index in `open` of each target, by the target's bytes.
    places: HashMap<Vec<u8>, usize>,
    open: Vec<Open>,
    key: Vec<u8>,
}

struct Open {
    target: Arc<Target>,
    batch: Batch,
    rows: Vec<RowPlace>,
}

impl<'a> RowBatches<'a> {
    /// Creates an empty collection. A request has at most `batch_size` rows.
    pub fn new(options: &'a SinkOptions, columns: &[SinkColumn], batch_size: usize, ids: &'a UniqueIds) -> Self {
        let of_target = |column: &SinkColumn| {
            use SinkColumn::{BrokerName, DelayLevel, QueueId, Topic};
            matches!(column, Topic | BrokerName | QueueId | DelayLevel)
        };
        let batch_options = BatchOptions {
            most_bytes: options.max_message_size,
            most_rows: batch_size.max(1),
            instance_id: Some(options.namespace.as_str()).filter(|namespace| !namespace.is_empty()),
            ids,
        };
        let has_targets = columns.iter().any(of_target);
        Self { options, batch_options, has_targets, places: HashMap::new(), open: Vec::new(), key: Vec::new() }
    }

    /// Adds a row. Returns a request if one became full, or if the row is sent alone.
    ///
    /// # Errors
    /// The row is invalid.
    pub fn add(&mut self, row: &Row<'_>, place: RowPlace, now_ms: i64) -> Result<Option<Parcel>, WrongRow> {
        let index = self.index_of(row);
        let (open, batch_options) = (&mut self.open[index], &self.batch_options);
        let target = open.target.clone();
        let wrong = |place, text: String| WrongRow { target: target.clone(), place, text };
        if target.delay_level != 0 {
            // brokers do not accept delayed messages in a batch
            let request = delay(row, target.delay_level, batch_options, now_ms);
            let request = request.map_err(|text| wrong(place.clone(), text))?;
            return Ok(Some(Parcel { target, rows: vec![place], request }));
        }
        let message = row.message();
        let add = |open: &mut Open| {
            let added = open.batch.add(&message, batch_options, now_ms);
            added.map_err(|unsendable| wrong(place.clone(), unsendable.to_string()))
        };
        if add(open)? {
            open.rows.push(place);
            // returned at once, since the next row may come much later
            return Ok(if open.batch.rows < batch_options.most_rows { None } else { open.take(now_ms) });
        }
        // the row did not fit, so it begins the next request
        let full = open.take(now_ms);
        add(open)?;
        open.rows.push(place);
        Ok(full)
    }

    /// Returns the requests of all collected rows, in the order in which their targets first appeared.
    pub fn flush(&mut self, now_ms: i64) -> Vec<Parcel> {
        self.places.clear();
        self.open.drain(..).filter_map(|mut open| open.take(now_ms)).collect()
    }

    fn index_of(&mut self, row: &Row<'_>) -> usize {
        // fast path: all rows have the same target
        if !self.has_targets && !self.open.is_empty() {
            return 0;
        }
        self.key.clear();
        if self.has_targets {
            for text in [row.topic, row.broker_name] {
                // lengths keep ("ab", "c") and ("a", "bc") apart; -1 stands for null
                self.key.extend_from_slice(&text.map_or(-1, |text| text.len() as i64).to_ne_bytes());
                self.key.extend_from_slice(text.unwrap_or_default());
            }
            self.key.push(row.queue_id.is_some().into());
            self.key.extend_from_slice(&row.queue_id.unwrap_or(0).to_ne_bytes());
            // null means 0, so both must give the same target
            self.key.extend_from_slice(&row.delay_level.unwrap_or(0).to_ne_bytes());
        }
        if let Some(index) = self.places.get(&self.key) {
            return *index;
        }
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let target = Target {
            topic: self.options.topic.clone().or_else(|| text(row.topic)),
            broker_name: text(row.broker_name),
            queue_id: row.queue_id,
            delay_level: row.delay_level.unwrap_or(0),
        };
        self.places.insert(self.key.clone(), self.open.len());
        self.open.push(Open { target: target.into(), batch: Batch::default(), rows: Vec::new() });
        self.open.len() - 1
    }
}

impl Open {
    /// Builds the request of the collected rows; `None` if there are no rows.
    fn take(&mut self, now_ms: i64) -> Option<Parcel> {
        let Batch { body, rows, .. } = std::mem::take(&mut self.batch);
        // the next request will have a similar size
        self.batch.body = Vec::with_capacity(body.len());
        (rows > 0).then(|| Parcel {
            target: self.target.clone(),
            rows: std::mem::take(&mut self.rows),
            request: Request {
                body,
                // like Java's `MessageBatch`; a batch has no other properties of its own
                properties: "WAIT\u{1}true".into(),
                born_timestamp: now_ms,
                is_batch: true,
                ..Request::default()
            },
        })
    }
}

/// Builds the request of a delayed row, which is sent alone.
fn delay(row: &Row<'_>, level: i64, options: &BatchOptions<'_>, now_ms: i64) -> Result<Request, String> {
    let text = |what: &str, bytes| std::str::from_utf8(bytes).map_err(|_| format!("expected UTF-8 in {what}"));
    let delay_level = i32::try_from(level).ok().filter(|level| *level > 0);
    let delay_level =
        delay_level.ok_or_else(|| format!("expected a delay_level of 1 or more, 0 or null for none, got {level}"))?;
    // the texts of Java's `Validators.checkMessage`
    let body = row.body.ok_or("the message body is null")?;
    if body.is_empty() {
        return Err("the message body length is zero".into());
    }
    if body.len() > options.most_bytes {
        return Err(format!("the message body size over max value, MAX: {}", options.most_bytes));
    }
    let flag = i32::try_from(row.flag.unwrap_or(0)).map_err(|_| "expected a flag of 32 bits")?;
    let mut pairs = Vec::new();
    for (name, value) in row.properties.as_deref().unwrap_or_default() {
        if let Some(value) = value {
            pairs.push((text("properties", name)?, text("properties", value)?));
        }
    }
    let fields = Properties {
        tags: row.tags.map(|tags| text("tags", tags)).transpose()?,
        keys: row.keys.as_ref().map(|keys| text("keys", Keys::bytes(keys))).transpose()?,
        wait_store: true,
        delay_level,
        pairs: &pairs,
        added: &[],
        unique_id: None,
    };
    let mut properties = String::new();
    let make_id = || options.ids.next(now_ms).text();
    fields.write_with_id(options.instance_id, make_id, &mut properties).map_err(|error| error.to_string())?;
    let (body, sys_flag) = if body.len() < COMPRESS_OVER { (body.to_vec(), 0) } else { compressed(body) };
    Ok(Request { body, properties, sys_flag, flag, born_timestamp: now_ms, is_batch: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::row::tests::RowBytes;

    const COLUMNS: [SinkColumn; 3] = [SinkColumn::Body, SinkColumn::QueueId, SinkColumn::DelayLevel];

    fn options() -> SinkOptions {
        let texts = [("nameServer", "a:1"), ("topic", "orders"), ("maxMessageSize", "2000")];
        SinkOptions::of(&texts.map(|(name, text)| (name.to_owned(), text.to_owned()))).expect("options")
    }

    fn ids() -> UniqueIds {
        let ids = UniqueIds::new([10, 0, 0, 1].into(), 1, 1);
        ids.begin_month(0, i64::MAX);
        ids
    }

    fn block(rows: &[(&str, Option<i64>, Option<i64>)]) -> (Arc<Block>, Vec<usize>) {
        let (mut bytes, mut places) = (RowBytes::default(), Vec::new());
        for (body, queue_id, delay_level) in rows {
            places.push(bytes.0.len());
            bytes = bytes.text(body);
            for number in [queue_id, delay_level] {
                bytes = match number {
                    Some(number) => bytes.number(*number),
                    None => bytes.null(),
                };
            }
        }
        (Arc::new(bytes.0.into()), places)
    }

    /// Returns each parcel's queue id, delay level and row numbers, or the error of a row.
    fn sent(batch_size: usize, rows: &[(&str, Option<i64>, Option<i64>)]) -> Result<Vec<String>, String> {
        let (options, ids, (block, places)) = (options(), ids(), block(rows));
        let mut batches = RowBatches::new(&options, &COLUMNS, batch_size, &ids);
        let mut parcels = Vec::new();
        for (number, at) in (100..).zip(places) {
            let (row, _) = block.row(&COLUMNS, at).expect("a row");
            let place = RowPlace { block: block.clone(), at, number };
            let added =
                batches.add(&row, place, 5).map_err(|wrong| format!("{}: {}", wrong.place.number, wrong.text))?;
            parcels.extend(added);
        }
        parcels.extend(batches.flush(5));
        let told = parcels.iter().map(|Parcel { target, rows, .. }| {
            let numbers: Vec<_> = rows.iter().map(|row| row.number).collect();
            format!("{:?} {} {numbers:?}", target.queue_id, target.delay_level)
        });
        Ok(told.collect())
    }

    #[test]
    fn rows_of_a_target_are_together_and_in_order() {
        let rows = [("a", Some(1), None), ("b", None, Some(0)), ("c", Some(1), Some(0)), ("d", Some(1), None)];
        assert_eq!(sent(256, &rows).expect("sent"), ["Some(1) 0 [100, 102, 103]", "None 0 [101]"]);
        assert_eq!(sent(2, &rows).expect("sent"), ["Some(1) 0 [100, 102]", "Some(1) 0 [103]", "None 0 [101]"]);
        let later = [("a", None, None), ("b", None, Some(2)), ("c", None, Some(2))];
        assert_eq!(sent(256, &later).expect("sent"), ["None 2 [101]", "None 2 [102]", "None 0 [100]"]);
    }

    #[test]
    fn bytes_fill_a_request_as_well() {
        let large = "x".repeat(900);
        let rows = [(large.as_str(), None, None); 3];
        assert_eq!(sent(256, &rows).expect("sent"), ["None 0 [100, 101]", "None 0 [102]"]);
        let wrong = sent(256, &[("a", None, None), (&"x".repeat(2000), None, None)]).expect_err("too large");
        assert!(wrong.starts_with("101: expected 2000 bytes at most, with properties; it has 2"), "{wrong}");
    }

    #[test]
    fn a_row_that_is_wrong_is_told_with_its_number() {
        let of = |row| sent(256, &[("a", None, None), row]).expect_err("wrong");
        assert_eq!(of(("", None, None)), "101: expected a body of one byte or more");
        assert_eq!(of(("", None, Some(1))), "101: the message body length is zero");
        let negative = "101: expected a delay_level of 1 or more, 0 or null for none, got -1";
        assert_eq!(of(("a", None, Some(-1))), negative);
    }
}
