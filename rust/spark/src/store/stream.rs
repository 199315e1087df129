//! The stream of a store directory. It follows the log of a live broker.
use crate::error::{Error, Result};
use crate::request::offsets::{checkpoint_json, foreign};
use crate::request::options::Options;
use crate::request::row_columns::RowColumns;
use crate::request::text::python_text;
use crate::store::piece::StorePiece;
use crate::store::read::StoreRead;
use crate::stream::{Level, Log, Stream};
use rmqfast_client::cluster::CheckInterrupt;
use rmqfast_store::format::message::{Item, Layout, Message};
use rmqfast_store::scan::{Column, Piece, Plan, ScanRequest, Start, Tail, Way};
use rmqfast_store::store::MessageStore;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Number of messages after which a batch may end.
const STEP: usize = 256;
/// Example of a stream's offset, shown in errors.
const POSITION: &str = r#"{"log": 123}"#;
/// Number of bytes of a record that are read first.
const HEAD: usize = 4096;
/// Pause before the stream looks for new messages at the log's end again.
const LOOK: Duration = Duration::from_millis(50);

/// A stream of a store. Its offsets are `{"log": 123456}`, byte positions in the commit log. Between two positions
/// every reader gets the same rows.
///
/// Source: `ReputMessageService.doReput`, which follows the log inside a broker.
pub struct StoreStream {
    read: StoreRead,
    begin: Start,
    max_bytes: Option<u64>,
    target: Option<u64>,
    /// The end of the log when it was last read.
    last: Option<u64>,
    /// Start and end of the last batch. A record is known to begin at both positions.
    known: Option<(u64, u64)>,
    is_strict: bool,
    log: Log,
    interrupt: Arc<CheckInterrupt>,
}

impl StoreStream {
    /// Creates the stream. The store is opened again for each call, so that new files are seen.
    ///
    /// # Errors
    /// A path that is not a local directory's, or an expression that does not parse.
    pub fn of(options: &Options, interrupt: Arc<CheckInterrupt>) -> Result<Self> {
        // no columns, since only tasks read messages
        let read = StoreRead::without_bounds(options, RowColumns::default())?;
        let begin = match options.number("startingTimestamp") {
            Some(when) => Start::Time(when),
            None if options.begin() == "earliest" => Start::Begin,
            None => Start::End,
        };
        let max_bytes = options.number("maxBytesPerTrigger").map(i64::cast_unsigned);
        let (is_strict, log) = (options.flag("failOnDataLoss"), Log::default());
        Ok(Self { read, begin, max_bytes, target: None, last: None, known: None, is_strict, log, interrupt })
    }

    fn position(&self, start: Start) -> Result<u64> {
        position(&self.read.open()?, start)
    }

    /// Checks that a record begins at the stream's position. Otherwise the position is of another log, and wrong
    /// messages would be read.
    fn check_place(&mut self, store: &MessageStore, place: u64) -> Result<()> {
        // messages that retention removed are reported by the task that misses them
        if self.known.is_some_and(|(start, end)| place == start || place == end)
            || place < store.log().min_offset()
            || begins_record(store, place)?
        {
            return Ok(());
        }
        let text = format!(
            "the log of {} has no message that begins at the checkpoint's offset {place}: it is another store, or it is damaged there",
            self.read.path.display()
        );
        self.lose(&text)
    }

    /// Returns the end of a message, about `most` bytes after `start`.
    fn behind(&self, store: &MessageStore, start: u64, most: u64, end: u64) -> Result<u64> {
        let mut interrupt = || (self.interrupt)().map_err(|_| rmqfast_store::Error::Interrupted);
        let request = ScanRequest { columns: vec![Column::QueueOffset], batch_rows: STEP, ..ScanRequest::default() };
        // a file begins with a record, so that the files before it need not be read
        let mut bases = store.log().segments().files().iter().rev().map(|file| file.base);
        let last = bases.find(|base| *base <= start + most).filter(|base| *base > start);
        let mut place = match last {
            Some(base) if begins_record(store, base)? => base,
            _ => start,
        };
        if place - start == most {
            return Ok(place);
        }
        let mut tail = Tail::new(store, &request, Start::Position(place))?.until(end);
        loop {
            if tail.poll(&mut interrupt)?.is_none() {
                if tail.is_over() {
                    return Ok(end);
                }
                // the record was complete when the end was determined, so it will soon be readable
                std::thread::sleep(LOOK);
                continue;
            }
            // a batch has at least one step of messages, since the stream would stop if `most` is too small for it
            if place > start && tail.position() - start > most {
                return Ok(place);
            }
            place = tail.position();
            if place - start >= most {
                return Ok(place);
            }
        }
    }

    /// Returns the position of the first message: where a stream begins to which this store is added later.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn first(&self) -> Result<String> {
        let begin = if matches!(self.begin, Start::Time(_)) { self.begin } else { Start::Begin };
        Ok(store_text(self.position(begin)?))
    }

    /// Returns the bytes of the log behind `consumed`; `None` if they are not known.
    ///
    /// # Errors
    /// The checkpoint of another stream.
    pub fn bytes_behind(&self, consumed: Option<&str>) -> Result<Option<u64>> {
        let consumed = consumed.map(store_position).transpose()?;
        Ok(self.last.zip(consumed).map(|(last, consumed)| last.saturating_sub(consumed)))
    }

    /// Returns the hosts on which the store lies, if they are known.
    pub fn hosts(&self) -> &[String] {
        &self.read.hosts
    }

    /// Returns the store's directory.
    pub fn path(&self) -> &Path {
        &self.read.path
    }

    /// Sets the limit of the next batches, in bytes of the log.
    pub fn limit(&mut self, max_bytes: u64) {
        self.max_bytes = Some(max_bytes);
    }

    /// Returns the tasks of a batch, see [`Stream::pieces`].
    ///
    /// # Errors
    /// See [`Stream::pieces`].
    pub fn store_pieces(&mut self, start: &str, end: &str) -> Result<Vec<Piece>> {
        let (from, end) = (store_position(start)?, store_position(end)?);
        if from > end {
            self.lose(&format!("the checkpoint has a batch that begins at {from} and ends at {end}, before that"))?;
        }
        if from >= end {
            return Ok(Vec::new());
        }
        let store = self.read.open()?;
        // Spark plans the last batch of an earlier run without calling `latest` first
        self.check_place(&store, from)?;
        // consume queues may not list these records yet, so their CRC is checked to see that they are complete
        let whole = Piece { way: Way::Log, from, end, verify_crc: true };
        let bytes = self.read.piece_bytes();
        if end - from <= bytes {
            return Ok(vec![whole]);
        }
        // the plan has this part only, so that equal offsets give equal pieces, however long the log has grown
        let mut plan = Plan::new(&store, &ScanRequest::default(), None)?;
        plan.pieces = vec![whole];
        plan.cut(bytes, 1)?;
        Ok(plan.pieces)
    }

    fn lose(&mut self, text: &str) -> Result<()> {
        if self.is_strict {
            let next_step =
                "give this stream a checkpointLocation of its own; failOnDataLoss=false goes on at the next message";
            return Err(Error::DataLoss(format!("{text}\n{next_step}")));
        }
        self.log.warn([format!("{text}; it goes on at the next message")]);
        Ok(())
    }
}

impl fmt::Debug for StoreStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreStream").field("read", &self.read).finish_non_exhaustive()
    }
}

impl Stream for StoreStream {
    fn description(&self) -> String {
        let topic = self.read.request.topic.as_ref().map_or_else(String::new, |topic| format!(", topic {topic}"));
        format!("store {}{topic}", self.read.path.display())
    }

    fn initial(&mut self) -> Result<String> {
        Ok(store_text(self.position(self.begin)?))
    }

    fn aim(&mut self) -> Result<()> {
        self.target = Some(self.position(Start::End)?);
        Ok(())
    }

    fn latest(&mut self, start: Option<&str>, is_limited: bool) -> Result<String> {
        let start = start.map(store_position).transpose()?;
        let store = self.read.open()?;
        let end = self.target.map_or_else(|| position(&store, Start::End), Ok)?;
        self.last = Some(end);
        let Some(start) = start else { return Ok(store_text(end)) };
        // the position may belong to another log
        if end < start {
            return Err(Error::argument(format!(
                "the log of {} ends at {end}, before the checkpoint's offset {start}: it is another store, or one that was \
                 cut off; give this stream a checkpointLocation of its own",
                self.read.path.display()
            )));
        }
        if start < end {
            self.check_place(&store, start)?;
        }
        let end = match self.max_bytes.filter(|most| is_limited && end - start > *most) {
            Some(most) => self.behind(&store, start, most, end)?,
            None => end,
        };
        // both are ends of messages, so the next batch needs no check there
        self.known = Some((start, end));
        Ok(store_text(end))
    }

    fn report(&self) -> Option<String> {
        self.last.map(store_text)
    }

    fn pieces(&mut self, start: &str, end: &str) -> Result<Vec<Vec<u8>>> {
        let pieces = self.store_pieces(start, end)?.into_iter();
        Ok(pieces.map(|piece| StorePiece { piece, broker: None, hosts: self.hosts().to_vec() }.to_bytes()).collect())
    }

    fn commit(&mut self, end: &str) -> Result<()> {
        store_position(end).map(drop)
    }

    fn metrics(&self, consumed: Option<&str>) -> Result<Vec<(String, String)>> {
        Ok(metrics_of(self.bytes_behind(consumed)?))
    }

    fn take_log(&mut self) -> Vec<(Level, String)> {
        self.log.take()
    }

    fn close(&mut self) {}
}

/// Returns the metrics of a stream that has these bytes of logs to read.
pub(super) fn metrics_of(bytes_behind: Option<u64>) -> Vec<(String, String)> {
    bytes_behind.map(|bytes| ("bytesBehindLatest".to_owned(), bytes.to_string())).into_iter().collect()
}

/// Whether a record, or the blank end of a file, begins at a position.
fn begins_record(store: &MessageStore, place: u64) -> Result<bool> {
    let head = match store.log().record_head(place, HEAD) {
        // behind the last file, or in a gap between files
        Err(rmqfast_store::Error::Invalid { .. }) => return Ok(false),
        head => head?,
    };
    Ok(match Layout::decode(&head) {
        Ok(Item::Message(layout)) => {
            Message::new(&head, layout).is_some_and(|message| message.physical_offset() == place.cast_signed())
        }
        // the record is longer than the bytes that were read
        Ok(Item::Partial(needed)) if needed > HEAD => {
            let record = store.log().record_head(place, needed)?;
            matches!(Layout::decode(&record), Ok(Item::Message(layout)) if Message::new(&record, layout)
                .is_some_and(|message| message.physical_offset() == place.cast_signed()))
        }
        Ok(Item::Blank(_)) => true,
        Ok(Item::Partial(_) | Item::Unwritten) | Err(_) => false,
    })
}

fn position(store: &MessageStore, start: Start) -> Result<u64> {
    Ok(Tail::new(store, &ScanRequest::default(), start)?.position())
}

/// Formats a position as JSON.
fn store_text(position: u64) -> String {
    format!("{{\"log\": {position}}}")
}

/// Parses the JSON of a position.
///
/// # Errors
/// The JSON is the offset of another source.
fn store_position(text: &str) -> Result<u64> {
    let value = checkpoint_json(text, POSITION)?;
    let only = value.as_object().filter(|members| members.len() == 1);
    let position = only.and_then(|members| members.get("log")).and_then(Value::as_u64);
    position.ok_or_else(|| {
        foreign(Error::argument(format!("checkpoint: expected {POSITION}, got {}", python_text(&value))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::options::Kind;
    use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};

    const SIZE: usize = 1000;

    fn append(path: &Path, count: usize, when: i64) {
        let options = AppendOptions { file_size: 1 << 20, index_slots: 16, index_entries: 9_000, ..Default::default() };
        let appender = Appender::open(path, options).expect("a store");
        let message = OwnedMessage { topic: "T".into(), body: vec![b'x'; SIZE], ..Default::default() };
        appender.append(&Messages::new(vec![message; count]), Some(when), 0).expect("appended");
        appender.close().expect("closed");
    }

    fn stream(path: &Path, options: &[(&str, &str)]) -> StoreStream {
        let path = path.to_str().expect("a text");
        let pairs = [("storePath", path)].into_iter().chain(options.iter().copied());
        let pairs: Vec<_> = pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        let options = Options::of(Kind::StoreStream, &pairs).expect("options");
        StoreStream::of(&options, Arc::new(rmqfast_remoting::never)).expect("a stream")
    }

    fn latest(stream: &mut StoreStream, start: &str, is_limited: bool) -> u64 {
        store_position(&stream.latest(Some(start), is_limited).expect("an end")).expect("a position")
    }

    fn pieces(stream: &mut StoreStream, start: &str, end: &str) -> Vec<Piece> {
        let pieces = stream.pieces(start, end).expect("pieces");
        pieces.iter().map(|bytes| StorePiece::of_bytes(bytes).expect("a piece").piece).collect()
    }

    #[test]
    fn a_stream_begins_where_its_options_say() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), 100, 1_600_000_000_000);
        let initial = |options: &[(&str, &str)]| stream(dir.path(), options).initial().expect("an offset");
        assert_eq!(initial(&[("startingOffsets", "earliest")]), r#"{"log": 0}"#);
        let end = initial(&[]);
        assert_eq!(initial(&[("startingOffsets", "Latest")]), end);
        assert!(store_position(&end).expect("a position") > (100 * SIZE) as u64, "{end}");
        // pieces of whole files: tasks filter older messages
        assert_eq!(initial(&[("startingTimestamp", "1600000000000")]), r#"{"log": 0}"#);
    }

    #[test]
    fn a_batch_ends_behind_a_message_within_the_limit_or_one_step_further() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), 1000, 1);
        let mut of = stream(dir.path(), &[("maxBytesPerTrigger", "600000")]);
        let start = r#"{"log": 0}"#;
        let end = latest(&mut of, start, false);
        assert_eq!(of.report(), Some(store_text(end)));
        assert_eq!(of.metrics(Some(start)).expect("metrics"), [("bytesBehindLatest".to_owned(), end.to_string())]);
        let record = end / 1000;
        assert_eq!(latest(&mut of, start, true), 2 * STEP as u64 * record);
        let mut small = stream(dir.path(), &[("maxBytesPerTrigger", "1")]);
        assert_eq!(latest(&mut small, start, true), STEP as u64 * record);
        let mut places = vec![0];
        while let Some(last) = places.last().filter(|last| **last < end) {
            places.push(latest(&mut of, &store_text(*last), true));
        }
        assert_eq!((places.len(), places.last()), (3, Some(&end)));
    }

    #[test]
    fn the_end_of_a_batch_is_looked_for_in_one_file() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), 3500, 1);
        let file_size = 1_u64 << 20;
        let bases = |most: u64| {
            let mut of = stream(dir.path(), &[("maxBytesPerTrigger", &most.to_string())]);
            latest(&mut of, r#"{"log": 0}"#, true)
        };
        assert_eq!(bases(2 * file_size), 2 * file_size);
        let record = bases(1) / STEP as u64;
        assert_eq!(bases(2 * file_size + 1), 2 * file_size);
        let step = STEP as u64 * record;
        assert_eq!(bases(2 * file_size + step + 1), 2 * file_size + step);
        // the file that contains the start is read from there
        let mut of = stream(dir.path(), &[("maxBytesPerTrigger", "1")]);
        assert_eq!(latest(&mut of, &store_text(2 * file_size), true), 2 * file_size + step);
    }

    #[test]
    fn a_stream_follows_its_store_unless_it_wants_what_is_there_now() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), 10, 1);
        let (mut of, mut now) = (stream(dir.path(), &[]), stream(dir.path(), &[]));
        let start = of.initial().expect("an offset");
        now.aim().expect("an end");
        append(dir.path(), 10, 2);
        let first = store_position(&start).expect("a position");
        assert_eq!(latest(&mut of, &start, true), 2 * first);
        assert_eq!(latest(&mut now, &start, true), first);
        assert_eq!(of.latest(None, false).expect("an end"), store_text(2 * first));
        assert_eq!(of.metrics(Some(&start)).expect("metrics")[0].1, first.to_string());
    }

    #[test]
    fn the_same_offsets_are_the_same_pieces_however_long_the_log_is() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), 500, 1);
        let mut of = stream(dir.path(), &[("partitionBytes", "100000")]);
        let end = of.latest(None, false).expect("an end");
        let (start, last) = (r#"{"log": 0}"#, store_position(&end).expect("a position"));
        let before = pieces(&mut of, start, &end);
        assert_eq!(before.len() as u64, last.div_ceil(100_000));
        let edges = before.iter().map(|piece| piece.end).zip(before.iter().skip(1).map(|piece| piece.from));
        assert!(edges.clone().all(|(end, from)| end == from), "{before:?}");
        assert!(before.iter().all(|piece| piece.way == Way::Log && piece.verify_crc));
        assert_eq!((before.first().map(|p| p.from), before.last().map(|p| p.end)), (Some(0), Some(last)));
        append(dir.path(), 3000, 2);
        assert_eq!(pieces(&mut of, start, &end), before);
        assert_eq!(pieces(&mut of, &end, &end), []);
        assert_eq!(pieces(&mut of, start, r#"{"log": 5000}"#).len(), 1);
    }

    #[test]
    fn a_store_in_place_of_another_is_told_by_what_stands_at_the_checkpoint() {
        let (one, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        append(one.path(), 10, 1);
        append(other.path(), 30, 1);
        let message = OwnedMessage { topic: "T".into(), body: vec![b'x'; SIZE + 17], ..Default::default() };
        let options = AppendOptions { file_size: 1 << 20, index_slots: 16, index_entries: 9_000, ..Default::default() };
        let longer = tempfile::tempdir().expect("a directory");
        let appender = Appender::open(longer.path(), options).expect("a store");
        appender.append(&Messages::new(vec![message; 30]), Some(1), 0).expect("appended");
        appender.close().expect("closed");
        let end = stream(one.path(), &[]).initial().expect("an offset");
        // a longer log with the same messages continues there, and each record is a valid position
        assert!(latest(&mut stream(other.path(), &[]), &end, true) > store_position(&end).expect("a position"));
        let error = stream(longer.path(), &[]).latest(Some(&end), true).expect_err("another").to_string();
        assert!(error.contains("has no message that begins at the checkpoint's offset"), "{error}");
        let mut careless = stream(longer.path(), &[("failOnDataLoss", "false")]);
        latest(&mut careless, &end, true);
        let told: Vec<_> = careless.take_log().into_iter().map(|(level, _)| level).collect();
        assert_eq!(told, [Level::Warning]);
        // a batch that was planned by an earlier run is checked again
        let (begin, behind) = (store_text(17), store_text(18));
        let mut strict = stream(one.path(), &[]);
        let error = strict.pieces(&begin, &behind).expect_err("no message").to_string();
        assert!(error.contains("has no message that begins at the checkpoint's offset 17"), "{error}");
        let mut careless = stream(one.path(), &[("failOnDataLoss", "false")]);
        careless.pieces(&begin, &behind).expect("pieces");
        assert_eq!(careless.take_log().len(), 1);
        // a position that was checked is not checked again; the blank end of a file is a valid position, too
        let mut small = stream(other.path(), &[("maxBytesPerTrigger", "1")]);
        let first = latest(&mut small, r#"{"log": 0}"#, true);
        assert!(first > 0 && small.take_log().is_empty());
    }

    #[test]
    fn a_batch_that_ends_before_it_begins_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), 10, 1);
        let (start, end) = (store_text(9000), store_text(10));
        let error = stream(dir.path(), &[]).pieces(&start, &end).expect_err("backwards").to_string();
        assert!(
            error.starts_with("the checkpoint has a batch that begins at 9000 and ends at 10, before that"),
            "{error}"
        );
        let mut careless = stream(dir.path(), &[("failOnDataLoss", "false")]);
        assert!(careless.pieces(&start, &end).expect("pieces").is_empty());
        assert!(
            matches!(&careless.take_log()[..], [(Level::Warning, text)] if text.contains("ends at 10, before that"))
        );
    }

    #[test]
    fn a_checkpoint_of_another_log_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), 10, 1);
        let mut of = stream(dir.path(), &[]);
        let error = of.latest(Some(r#"{"log": 99999999}"#), true).expect_err("another log").to_string();
        assert!(error.contains("before the checkpoint's offset 99999999: it is another store, or one that"), "{error}");
        let foreign = r#"{"orders": {"broker-a": {"0": 7}}}"#;
        assert!(of.commit(foreign).is_err());
        assert!(of.pieces(foreign, r#"{"log": 7}"#).is_err());
    }

    #[test]
    fn a_position_has_the_text_of_python_and_those_of_others_are_refused() {
        assert_eq!(store_text(1 << 40), r#"{"log": 1099511627776}"#);
        assert_eq!(store_position(r#" {"log":1099511627776}"#).expect("a position"), 1 << 40);
        for (text, got) in [
            (r#"{"orders": {"b": {"0": 7}}}"#, "{'orders': {'b': {'0': 7}}}"),
            (r#"{"log": 7, "more": 8}"#, "{'log': 7, 'more': 8}"),
            (r#"{"log": true}"#, "{'log': True}"),
            (r#"{"log": -1}"#, "{'log': -1}"),
            (r#"{"log": 1.5}"#, "{'log': 1.5}"),
            ("[7]", "[7]"),
            ("latest", "'latest'"),
        ] {
            let error = store_position(text).expect_err(text).to_string();
            let expected = r#"checkpoint: expected {"log": 123}, got "#;
            assert_eq!(error, format!("{expected}{got}; give this stream a checkpointLocation of its own"));
        }
    }
}
