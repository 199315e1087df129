//! The stream of the stores of several brokers. It follows the log of each.
use crate::error::{Error, Result};
use crate::request::offsets::{checkpoint_json, foreign};
use crate::request::options::{Kind, Options, Pairs};
use crate::request::text::python_text;
use crate::store::brokers::StoreOptions;
use crate::store::piece::StorePiece;
use crate::store::stores_read::describe_stores;
use crate::store::stream::{StoreStream, metrics_of};
use crate::stream::{Level, Log, Stream};
use rmqfast_client::cluster::CheckInterrupt;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Example of a stream's offset, shown in errors.
const POSITION: &str = r#"{"broker-a": {"log": 123}}"#;

/// Opens the stream of a store, or of those of several brokers.
///
/// # Errors
/// See [`StoreOptions::of`] and [`StoreStream::of`].
pub fn open_store_stream(pairs: &[(String, String)], interrupt: Arc<CheckInterrupt>) -> Result<Box<dyn Stream>> {
    let options = Options::of(Kind::StoreStream, pairs)?;
    let stores = StoreOptions::of(Kind::StoreStream, pairs)?;
    if let [StoreOptions { broker_name: None, .. }] = &stores[..] {
        return Ok(Box::new(StoreStream::of(&options, interrupt)?));
    }
    let max_bytes = options.number("maxBytesPerTrigger").map(i64::cast_unsigned);
    let mut stream = StoresStream {
        pairs: pairs.to_vec(),
        interrupt,
        max_bytes,
        streams: BTreeMap::new(),
        is_fixed: false,
        last: None,
        absent: BTreeSet::new(),
        log: Log::default(),
    };
    stream.follow(stores)?;
    Ok(Box::new(stream))
}

/// A stream of stores. Its offsets are those of each store by broker, as `{"broker-a": {"log": 123456}}`.
///
/// A broker whose store appears later begins at its first message. Of one whose store is gone the offset stays.
pub struct StoresStream {
    pairs: Pairs,
    interrupt: Arc<CheckInterrupt>,
    max_bytes: Option<u64>,
    streams: BTreeMap<String, StoreStream>,
    /// Whether brokers that appear now belong to a later run.
    is_fixed: bool,
    last: Option<String>,
    /// Brokers without a store, of which was told.
    absent: BTreeSet<String>,
    log: Log,
}

/// Offsets of a store's stream, by broker.
type ByBroker = BTreeMap<String, String>;

impl StoresStream {
    /// Looks for the stores again.
    fn look(&mut self) -> Result<()> {
        if self.is_fixed { Ok(()) } else { self.follow(StoreOptions::of(Kind::StoreStream, &self.pairs)?) }
    }

    fn follow(&mut self, stores: Vec<StoreOptions>) -> Result<()> {
        let mut streams = BTreeMap::new();
        for StoreOptions { broker_name, pairs } in stores {
            let stream = StoreStream::of(&Options::of(Kind::StoreStream, &pairs)?, self.interrupt.clone())?;
            let Some(name) = broker_name else {
                // all stores are gone, as of a disk that is not mounted: the error of the path says so
                stream.first()?;
                let text =
                    format!("expected the stores of several brokers, got one store, {}", stream.path().display());
                return Err(Error::argument(format!("option storePath: {text}")));
            };
            // a mirror may have begun another copy
            let known = self.streams.remove(&name).filter(|known| known.path() == stream.path());
            streams.insert(name, known.unwrap_or(stream));
        }
        self.streams = streams;
        Ok(())
    }

    /// Returns an answer of each broker's stream as JSON.
    fn ask(&mut self, question: impl Fn(&mut StoreStream) -> Result<String>) -> Result<String> {
        let mut answers = ByBroker::new();
        for (name, stream) in &mut self.streams {
            answers.insert(name.clone(), question(stream).map_err(|error| name_broker(name, error))?);
        }
        Ok(to_text(&answers))
    }

    /// Returns the offset at which a broker's stream continues.
    fn start_of(&self, name: &str, start: &ByBroker) -> Result<Option<String>> {
        let Some(stream) = self.streams.get(name) else { return Ok(None) };
        start.get(name).map_or_else(|| stream.first(), |offset| Ok(offset.clone())).map(Some)
    }

    /// Tells of brokers that have offsets, but no store any more.
    fn report_absent(&mut self, start: &ByBroker) {
        for (name, offset) in start.iter().filter(|(name, _)| !self.streams.contains_key(*name)) {
            if self.absent.insert(name.clone()) {
                let text = format!("broker {name}: its store is not there any more; it was read up to {offset}");
                self.log.warn([text]);
            }
        }
    }

    /// Returns the ends of a batch. Every broker with a backlog gets an equal part of the limit.
    fn ends(&mut self, starts: &ByBroker, is_limited: bool) -> Result<ByBroker> {
        let mut ends = ByBroker::new();
        for (name, stream) in &mut self.streams {
            let end = stream.latest(starts.get(name).map(String::as_str), false);
            ends.insert(name.clone(), end.map_err(|error| name_broker(name, error))?);
        }
        self.last = Some(to_text(&ends));
        let behind: Vec<&String> =
            ends.iter().filter(|(name, end)| starts.get(*name) != Some(end)).map(|(name, _)| name).collect();
        let Some(most) = self.max_bytes.filter(|_| is_limited && !behind.is_empty()) else { return Ok(ends) };
        let share = (most / behind.len() as u64).max(1);
        let mut limited = ByBroker::new();
        for name in behind {
            if let Some(stream) = self.streams.get_mut(name) {
                stream.limit(share);
                let end = stream.latest(starts.get(name).map(String::as_str), true);
                limited.insert(name.clone(), end.map_err(|error| name_broker(name, error))?);
            }
        }
        ends.extend(limited);
        Ok(ends)
    }
}

impl fmt::Debug for StoresStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoresStream").field("streams", &self.streams).finish_non_exhaustive()
    }
}

impl Stream for StoresStream {
    fn description(&self) -> String {
        describe_stores(self.streams.iter().map(|(name, stream)| (name.as_str(), stream.path())))
    }

    fn initial(&mut self) -> Result<String> {
        self.ask(StoreStream::initial)
    }

    fn aim(&mut self) -> Result<()> {
        self.look()?;
        self.is_fixed = true;
        for (name, stream) in &mut self.streams {
            stream.aim().map_err(|error| name_broker(name, error))?;
        }
        Ok(())
    }

    fn latest(&mut self, start: Option<&str>, is_limited: bool) -> Result<String> {
        self.look()?;
        let Some(start) = start else {
            let ends = self.ask(|stream| stream.latest(None, false))?;
            self.last = Some(ends.clone());
            return Ok(ends);
        };
        let start = parse(start)?;
        self.report_absent(&start);
        let mut starts = ByBroker::new();
        for name in self.streams.keys() {
            if let Some(offset) = self.start_of(name, &start)? {
                starts.insert(name.clone(), offset);
            }
        }
        let ends = self.ends(&starts, is_limited)?;
        // brokers without a store keep their offsets
        Ok(to_text(&start.into_iter().chain(ends).collect()))
    }

    fn report(&self) -> Option<String> {
        self.last.clone()
    }

    fn pieces(&mut self, start: &str, end: &str) -> Result<Vec<Vec<u8>>> {
        let (start, end) = (parse(start)?, parse(end)?);
        // Spark plans the last batch of an earlier run first, when not all of its brokers may be known
        self.look()?;
        let mut all = Vec::new();
        for (name, end) in end {
            if start.get(&name) == Some(&end) {
                continue;
            }
            let Some(from) = self.start_of(&name, &start)? else {
                let text =
                    format!("broker {name}: its store is not there any more, and a batch of the checkpoint reads it");
                return Err(Error::DataLoss(text));
            };
            let Some(stream) = self.streams.get_mut(&name) else { continue };
            let pieces = stream.store_pieces(&from, &end).map_err(|error| name_broker(&name, error))?;
            let path = stream.path().to_string_lossy().into_owned();
            let (broker, hosts) = (Some((name, path)), stream.hosts());
            let named = |piece| StorePiece { piece, broker: broker.clone(), hosts: hosts.to_vec() }.to_bytes();
            all.extend(pieces.into_iter().map(named));
        }
        Ok(all)
    }

    fn commit(&mut self, end: &str) -> Result<()> {
        parse(end).map(drop)
    }

    fn metrics(&self, consumed: Option<&str>) -> Result<Vec<(String, String)>> {
        let consumed = consumed.map(parse).transpose()?.unwrap_or_default();
        let mut behind = None;
        for (name, stream) in &self.streams {
            if let Some(bytes) = stream.bytes_behind(consumed.get(name).map(String::as_str))? {
                behind = Some(behind.unwrap_or(0) + bytes);
            }
        }
        Ok(metrics_of(behind))
    }

    fn take_log(&mut self) -> Vec<(Level, String)> {
        let mut lines = self.log.take();
        for (name, stream) in &mut self.streams {
            let of_store = stream.take_log().into_iter();
            lines.extend(of_store.map(|(level, text)| (level, format!("broker {name}: {text}"))));
        }
        lines
    }

    fn close(&mut self) {}
}

fn name_broker(name: &str, error: Error) -> Error {
    match error {
        Error::DataLoss(text) => Error::DataLoss(format!("broker {name}: {text}")),
        error => error,
    }
}

/// Formats offsets as JSON, with the spaces of Python.
fn to_text(offsets: &ByBroker) -> String {
    let each: Vec<String> = offsets.iter().map(|(name, offset)| format!("{}: {offset}", json!(name))).collect();
    format!("{{{}}}", each.join(", "))
}

/// Parses the offsets of a checkpoint.
///
/// # Errors
/// The JSON is the offset of another source.
fn parse(text: &str) -> Result<ByBroker> {
    let value = checkpoint_json(text, POSITION)?;
    let refuse = || foreign(Error::argument(format!("checkpoint: expected {POSITION}, got {}", python_text(&value))));
    let by_broker: &Map<String, Value> = value.as_object().ok_or_else(refuse)?;
    let each = |(name, offset): (&String, &Value)| {
        let position =
            offset.as_object().filter(|offset| offset.len() == 1).and_then(|offset| offset.get("log")?.as_u64());
        Ok((name.clone(), format!("{{\"log\": {}}}", position.ok_or_else(refuse)?)))
    };
    by_broker.iter().map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::options::replace_options;
    use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
    use std::path::Path;

    fn append(directory: &Path, broker: &str, count: usize) {
        let options = AppendOptions { file_size: 1 << 20, index_slots: 16, index_entries: 9_000, ..Default::default() };
        let appender = Appender::open(&directory.join(broker), options).expect("a store");
        let message = OwnedMessage { topic: "T".into(), body: vec![b'x'; 900], ..Default::default() };
        appender.append(&Messages::new(vec![message; count]), Some(1), 0).expect("appended");
        appender.close().expect("closed");
    }

    fn stream(directory: &Path, more: &[(&str, &str)]) -> Box<dyn Stream> {
        let path = directory.to_str().expect("a text");
        let pairs = [("storePath", path), ("startingOffsets", "earliest")];
        let pairs: Vec<_> = pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let more: Vec<_> = more.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        let pairs = replace_options(&pairs, &more);
        open_store_stream(&pairs, Arc::new(rmqfast_remoting::never)).expect("a stream")
    }

    fn positions(offsets: &str) -> Vec<(String, u64)> {
        let number = |offset: &str| offset.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number");
        parse(offsets).expect("offsets").into_iter().map(|(name, offset)| (name, number(&offset))).collect()
    }

    fn brokers(pieces: &[Vec<u8>]) -> Vec<(String, u64, u64)> {
        let piece = |bytes: &Vec<u8>| {
            let StorePiece { piece, broker, .. } = StorePiece::of_bytes(bytes).expect("a piece");
            (broker.expect("a broker").0, piece.from, piece.end)
        };
        pieces.iter().map(piece).collect()
    }

    #[test]
    fn a_stream_has_the_offsets_of_each_broker_and_takes_what_is_new() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), "a", 10);
        append(dir.path(), "b", 20);
        let mut of = stream(dir.path(), &[]);
        let start = of.initial().expect("offsets");
        assert_eq!(start, r#"{"a": {"log": 0}, "b": {"log": 0}}"#);
        let end = of.latest(Some(&start), true).expect("offsets");
        let [(_, a), (_, b)] = positions(&end)[..] else { panic!("{end}") };
        assert_eq!(b, 2 * a);
        let pieces = of.pieces(&start, &end).expect("pieces");
        assert_eq!(brokers(&pieces), [("a".to_owned(), 0, a), ("b".to_owned(), 0, b)]);
        assert!(of.pieces(&end, &end).expect("none").is_empty());
        assert_eq!(of.metrics(Some(&start)).expect("metrics")[0].1, (a + b).to_string());
        assert_eq!(of.report().as_deref(), Some(&*end));
        // a broker that appears later begins at its first message
        append(dir.path(), "c", 5);
        let later = of.latest(Some(&end), true).expect("offsets");
        assert_eq!(brokers(&of.pieces(&end, &later).expect("pieces")), [("c".to_owned(), 0, a / 2)]);
        let mut again = stream(dir.path(), &[("startingOffsets", "latest")]);
        assert_eq!(brokers(&again.pieces(&end, &later).expect("pieces")), [("c".to_owned(), 0, a / 2)]);
        of.commit(&later).expect("committed");
        assert!(of.description().starts_with("stores of a at "), "{}", of.description());
    }

    #[test]
    fn tasks_prefer_the_hosts_of_their_store() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), "a", 1);
        append(dir.path(), "b", 1);
        let hosts = |path: &Path, text: &str| {
            let mut of = stream(path, &[("storeHosts", text)]);
            let (start, end) = (of.initial().expect("offsets"), of.latest(None, false).expect("offsets"));
            let pieces = of.pieces(&start, &end).expect("pieces");
            pieces.iter().map(|bytes| StorePiece::of_bytes(bytes).expect("a piece").hosts).collect::<Vec<_>>()
        };
        assert_eq!(hosts(dir.path(), r#"{"a": ["x", "y"]}"#), [vec!["x", "y"], vec![]]);
        assert_eq!(hosts(&dir.path().join("a"), "x, y"), [["x", "y"]]);
    }

    #[test]
    fn brokers_with_a_backlog_share_the_limit() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), "a", 900);
        append(dir.path(), "b", 900);
        append(dir.path(), "c", 1);
        let mut of = stream(dir.path(), &[("maxBytesPerTrigger", "900000")]);
        let start = of.initial().expect("offsets");
        let whole = positions(&of.latest(None, false).expect("offsets"));
        let first = of.latest(Some(&start), true).expect("offsets");
        let [(_, a), (_, b), (_, c)] = positions(&first)[..] else { panic!("{first}") };
        assert!(a == b && a < 310_000 && a > 200_000, "{first}");
        assert_eq!(c, whole[2].1);
        let second = of.latest(Some(&first), true).expect("offsets");
        assert_eq!(positions(&second)[0].1, 2 * a);
        of.aim().expect("an end");
        append(dir.path(), "d", 1);
        assert_eq!(positions(&of.latest(Some(&second), false).expect("offsets")), whole);
    }

    #[test]
    fn a_store_that_is_gone_keeps_its_offset_and_is_told_once() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), "a", 10);
        append(dir.path(), "b", 10);
        let mut of = stream(dir.path(), &[]);
        let start = of.initial().expect("offsets");
        let end = of.latest(Some(&start), true).expect("offsets");
        std::fs::remove_dir_all(dir.path().join("b")).expect("removed");
        assert_eq!(of.latest(Some(&end), true).expect("offsets"), end);
        of.latest(Some(&end), true).expect("offsets");
        let told = of.take_log();
        assert!(matches!(&told[..], [(Level::Warning, text)] if text.starts_with("broker b: its store is not there")));
        let error = of.pieces(&start, &end).expect_err("lost").to_string();
        assert!(error.starts_with("broker b: its store is not there any more"), "{error}");
        assert!(of.pieces(&end, &end).expect("none").is_empty());
    }

    #[test]
    fn stores_that_are_all_gone_are_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        append(&dir.path().join("disk"), "a", 10);
        let mut of = stream(&dir.path().join("disk"), &[]);
        let start = of.initial().expect("offsets");
        std::fs::remove_dir_all(dir.path().join("disk/a")).expect("removed");
        let error = of.latest(Some(&start), true).expect_err("no store").to_string();
        assert!(error.contains("no RocketMQ store"), "{error}");
        append(dir.path(), "disk", 10);
        let error = of.latest(Some(&start), true).expect_err("one store").to_string();
        assert!(
            error.starts_with("option storePath: expected the stores of several brokers, got one store"),
            "{error}"
        );
    }

    #[test]
    fn losses_are_named_by_the_broker() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), "a", 10);
        append(dir.path(), "b", 10);
        let inside = r#"{"a": {"log": 0}, "b": {"log": 17}}"#;
        let error = stream(dir.path(), &[]).latest(Some(inside), true).expect_err("no message").to_string();
        assert!(error.starts_with("broker b: the log of "), "{error}");
        let mut careless = stream(dir.path(), &[("failOnDataLoss", "false")]);
        careless.latest(Some(inside), true).expect("offsets");
        let told = careless.take_log();
        assert!(matches!(&told[..], [(Level::Warning, text)] if text.starts_with("broker b: the log of ")), "{told:?}");
    }

    #[test]
    fn offsets_of_another_source_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        append(dir.path(), "a", 1);
        let mut of = stream(dir.path(), &[]);
        for text in [r#"{"log": 5}"#, r#"{"a": {"log": -1}}"#, r#"{"T": {"a": {"0": 7}}}"#, "[]", "latest"] {
            let error = of.latest(Some(text), true).expect_err(text).to_string();
            assert!(error.starts_with(r#"checkpoint: expected {"broker-a": {"log": 123}}, got "#), "{error}");
        }
    }
}
