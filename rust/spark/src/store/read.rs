//! A read of one store.
use crate::error::{Error, Result};
use crate::request::offsets::{StoreOffsets, bounds_text};
use crate::request::options::{Kind, Options, Pairs, replace_options};
use crate::request::row_columns::RowColumns;
use crate::request::text::quote;
use crate::store::hosts::hosts_of;
use crate::store::piece::{Cut, PIECE_BYTES};
use rmqfast_store::file::{Io, local_path};
use rmqfast_store::scan::push_down::{Filter, Selection};
use rmqfast_store::scan::{OffsetBound, Piece, Plan, QueueCounts, ScanRequest, Way};
use rmqfast_store::store::commit_log::DamageLog;
use rmqfast_store::store::{Damage, MessageStore, OpenOptions};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The store's directory and the selected messages, shared by all tasks.
#[derive(Debug)]
pub struct StoreRead {
    /// The store's directory, which must be at the same path on every executor.
    pub path: PathBuf,
    /// Selects messages and columns.
    pub request: ScanRequest,
    /// Whether damage fails the task. Otherwise damage is logged.
    pub fail_on_damage: bool,
    /// The topic that a filter selects, if the options select all topics.
    pub only_topic: Option<String>,
    /// Whether no message can match the filters.
    pub is_empty: bool,
    commit_log_dirs: Vec<PathBuf>,
    /// The hosts on which the store lies, if they are known.
    pub(super) hosts: Vec<String>,
    pub(super) cut: Cut,
    /// The begin and the end of the log at the time when the read was resolved; `u64::MAX` if unknown.
    log_range: (u64, u64),
}

impl StoreRead {
    /// Builds the read of the columns of a schema, see [`RowColumns::of_plan`], from options of [`resolve`] and from the
    /// filters that Spark pushed down.
    ///
    /// # Errors
    /// See [`Options::of`]. Also an expression that does not parse, or a path that is not a local directory's.
    pub fn of(pairs: &[(String, String)], fields: &[String], filters: &[Filter]) -> Result<Self> {
        let options = Options::of(Kind::Columnar, pairs)?;
        let mut read = Self::new(&options, RowColumns::of_plan(&options, fields)?)?;
        read.take(filters);
        Ok(read)
    }

    fn new(options: &Options, row: RowColumns) -> Result<Self> {
        check_io(options)?;
        Ok(Self::without_bounds(options, row)?.within(&StoreOffsets::of(options)?))
    }

    /// Builds a read that ignores offsets. Streams use it, because their pieces are parts of the log.
    ///
    /// # Errors
    /// An expression that does not parse, or a path that is not a local directory's.
    pub fn without_bounds(options: &Options, row: RowColumns) -> Result<Self> {
        let log_edge = |name| options.number(name).map_or(u64::MAX, i64::cast_unsigned);
        let count = |name| options.number(name).map(i64::cast_unsigned);
        let directories = options.texts("commitLogDirs").unwrap_or(&[]).iter().map(|d| local("commitLogDirs", d));
        Ok(Self {
            path: local("path", options.text("storePath").unwrap_or_default())?,
            request: row.scan_request(options)?,
            fail_on_damage: options.flag("failOnDataLoss"),
            only_topic: None,
            is_empty: false,
            commit_log_dirs: directories.collect::<Result<_>>()?,
            hosts: hosts_of(options)?,
            // tasks inside the JVM start at once, without a Python worker
            cut: Cut { least: count("minPartitions"), bytes: count("partitionBytes"), worker_cores: None },
            log_range: (log_edge("logStart"), log_edge("logEnd")),
        })
    }

    /// Returns the approximate bytes of the commit log in a piece.
    pub fn piece_bytes(&self) -> u64 {
        self.cut.bytes.unwrap_or(PIECE_BYTES)
    }

    /// Applies offset bounds that [`resolve`] wrote, without opening the store.
    fn within(mut self, offsets: &StoreOffsets) -> Self {
        let bound = |(known, offsets): (bool, _)| known.then_some(OffsetBound::ByQueue(offsets));
        // after `resolve` the bounds are numbers; a queue without a bound is read to its end
        let (start, end) = offsets.by_number();
        self.request.start_offset = bound((!start.is_empty(), start));
        self.request.end_offset = bound((!end.is_empty(), end));
        self
    }

    /// Returns the broker's name, if it is known, and the store's directory.
    pub fn place(&self) -> String {
        let broker = self.request.broker_name.as_ref().map_or_else(String::new, |name| format!("broker {name}, "));
        format!("{broker}store {}", self.path.display())
    }

    /// Narrows the read by filters. Returns for each filter whether the read applies it.
    pub fn take(&mut self, filters: &[Filter]) -> Vec<bool> {
        let mut selection =
            Selection { only_topic: self.only_topic.take(), is_empty: self.is_empty, ..Selection::of(&self.request) };
        let is_taken = selection.take(filters);
        selection.narrow(&mut self.request);
        (self.only_topic, self.is_empty) = (selection.only_topic, selection.is_empty);
        is_taken
    }

    /// Opens the store again, so that new files are seen. Called in the driver for planning, and in each task for
    /// reading.
    ///
    /// # Errors
    /// The directory is not a store, or not one of a supported kind.
    pub fn open(&self) -> Result<MessageStore> {
        // never mapped: the JVM dies if someone truncates a mapped file
        let options = OpenOptions { commit_log_dirs: self.commit_log_dirs.clone(), io: Io::Pread };
        Ok(MessageStore::open(&self.path, &options)?)
    }

    /// Counts messages with the consume queues alone. `None` if the count needs the messages themselves.
    ///
    /// # Errors
    /// The store does not have the topic, or cannot be read.
    pub fn known_counts(&self) -> Result<Option<QueueCounts>> {
        if self.is_empty {
            return Ok(Some(QueueCounts::default()));
        }
        let store = self.open()?;
        let (start, end) = self.log_range;
        // consume queues do not show lost messages, which a count must not hide
        let is_whole = (start == u64::MAX || start >= store.log().min_offset()) && self.lost_from(&store) == u64::MAX;
        // a filter by topic also selects records that no consume queue lists
        if self.only_topic.is_some() || !is_whole {
            return Ok(None);
        }
        Ok(QueueCounts::of(&store, &self.request, end)?)
    }

    /// Cuts the read into pieces of about `cut` bytes in the order of the log, for `cores` cores.
    ///
    /// # Errors
    /// The store does not have the topic, or cannot be read.
    pub(super) fn plan(&self, store: &MessageStore, cut: u64, cores: u64) -> Result<Vec<Piece>> {
        let mut plan = Plan::new(store, &self.request, None)?;
        plan.cut(cut, cores)?;
        let (start, end) = self.log_range;
        // messages that came after the read was resolved are left out
        let pieces = plan.pieces.into_iter().map(|piece| Piece { end: piece.end.min(end), ..piece });
        // removed parts become pieces, too, so that their tasks report the loss
        let [before, behind] = [(start, end.min(store.log().min_offset())), (self.lost_from(store), end)]
            .map(|(from, end)| Piece { way: Way::Log, from, end, verify_crc: false });
        Ok([before].into_iter().chain(pieces).chain([behind]).collect())
    }

    /// Returns the end of the log if it has become shorter since the read was resolved, otherwise `u64::MAX`.
    fn lost_from(&self, store: &MessageStore) -> u64 {
        let (end, asked) = (store.log().segments().end(), self.log_range.1);
        if asked != u64::MAX && end < asked { end } else { u64::MAX }
    }
}

/// Replaces offsets in the options by the store's current numbers. Also checks store, topic and the columns of the schema,
/// so that errors appear here instead of at Spark's first action.
///
/// # Errors
/// See [`StoreRead::of`] and [`Plan::new`]. Also a start offset that has expired.
pub fn resolve(pairs: &[(String, String)], fields: &[String]) -> Result<Pairs> {
    let options = Options::of(Kind::Columnar, pairs)?;
    let row = RowColumns::of_schema(&options, fields)?;
    row.check_agreed(&options)?;
    let read = StoreRead::new(&options, row)?;
    let store = read.open()?;
    // planned only to check the topic and the filters
    Plan::new(&store, &read.request, None)?;
    let offsets = StoreOffsets::of(&options)?;
    let Some(topic) = options.text("topic").filter(|_| !offsets.are_whole()) else { return Ok(pairs.to_vec()) };
    let queues = store.topics()?.remove(topic).unwrap_or_default().into_iter().collect();
    let (first, last) = offsets.bounds(&queues)?;
    Ok(replace_options(
        pairs,
        &[("startingOffsets", bounds_text(topic, &first)), ("endingOffsets", bounds_text(topic, &last))],
    ))
}

/// Refuses the option `io=mmap`, which can crash a JVM.
///
/// # Errors
/// The option `io` is `mmap`.
pub fn check_io(options: &Options) -> Result<()> {
    // truncated mapped files raise SIGBUS, and a handler here would conflict with the JVM's own
    if options.text("io") == Some("mmap") {
        let text = "option io: expected pread (a mapped file that somebody truncates would end the JVM), got 'mmap'";
        return Err(Error::argument(text));
    }
    Ok(())
}

/// Makes a path absolute, since executors have other working directories. Symbolic links are kept.
pub(crate) fn local(option: &str, text: &str) -> Result<PathBuf> {
    let path = local_path(OsStr::new(text)).map_err(|expected| {
        let got = quote(text);
        Error::argument(format!("option {option}: expected {expected}, seen by every executor, got {got}"))
    })?;
    // not `canonicalize`: a link may lead elsewhere on an executor
    std::path::absolute(&path).map_err(|e| rmqfast_store::Error::io(&path, e).into())
}

const MOST_LISTED: usize = 20;

/// Returns the part of a piece that the log still has, and the parts that are lost. A broker may delete its oldest
/// files while a job waits.
pub fn present_part(store: &MessageStore, piece: Piece) -> (Piece, Vec<Damage>) {
    let segments = store.log().segments();
    let (first, last) = (segments.start(), segments.end());
    // clamped, so that a piece that is wholly lost is empty and not reversed
    let from = piece.from.max(first).min(piece.end);
    let end = piece.end.min(last).max(from);
    let reason = format!("the log held this when the read was planned, it now is {first} to {last}");
    let gone = [(piece.from, from - piece.from), (end, piece.end - end)].into_iter().filter(|(_, length)| *length > 0);
    let file = store.root();
    let damage = gone.map(|(offset, length)| Damage { offset, length, reason: reason.clone(), file: file.into() });
    (Piece { from, end, ..piece }, damage.collect())
}

/// Describes the lost and damaged places of a piece; `None` if there is no damage. `place` names the store.
pub fn damage_text(place: &str, piece: Piece, lost: &[Damage], found: &DamageLog) -> Option<String> {
    let damage: Vec<&Damage> = lost.iter().chain(found.entries()).collect();
    if damage.is_empty() {
        return None;
    }
    let mut places: Vec<String> = damage.iter().take(MOST_LISTED).map(ToString::to_string).collect();
    let all = damage.len() as u64 + found.more();
    if all > places.len() as u64 {
        places.push(format!("and {} more", all - places.len() as u64));
    }
    let at = format!("{place}, commit log {} to {}", piece.from, piece.end);
    Some(format!("{at}: {all} damaged places: {}", places.join("; ")))
}

/// Returns the error text of a read that refuses damage.
pub fn refusal_text(words: &str) -> String {
    format!("{words}; on_damage=\"warn\" (failOnDataLoss=false) reads what is left")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_path_is_a_directory_of_this_machine() {
        let local = |text: &str| local("path", text);
        assert_eq!(local("file:///data/store").expect("local"), Path::new("/data/store"));
        assert!(local("store").expect("local").is_absolute());
        for text in ["s3://bucket/store", ""] {
            let error = local(text).expect_err("no directory").to_string();
            assert!(
                error.contains("option path: expected a path") && error.contains(&format!("got '{text}'")),
                "{error}"
            );
        }
    }
}
