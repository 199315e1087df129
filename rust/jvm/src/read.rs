//! What a Spark job reads from a store, and the partitions that its tasks read apart from each other.
use crate::failure::{Failure, Result, quoted};
use crate::filters::Filter;
use crate::offsets::{Bounds, EARLIEST, LATEST, Offsets, Queues, check_not_expired, told};
use crate::options::{Options, Pairs, replaced};
use rmqfast_store::file::Io;
use rmqfast_store::filter::{Sql92, TagExpression};
use rmqfast_store::scan::{Column, Listed, OffsetBound, Piece, Plan, ScanRequest, TimeUnit, Way};
use rmqfast_store::store::{MessageStore, OpenOptions};
use std::path::{Path, PathBuf};

/// What all tasks of a read share: where the store is, and what shall be read.
#[derive(Debug)]
pub struct Read {
    /// The store's directory, as every executor sees it.
    pub path: PathBuf,
    /// Which messages, which columns.
    pub request: ScanRequest,
    /// Whether damage ends the task that finds it; else it is told.
    pub fail_on_damage: bool,
    /// Only this topic's rows of a request for all topics.
    pub only_topic: Option<String>,
    /// No message can pass the filters.
    pub is_empty: bool,
    commit_log_dirs: Vec<PathBuf>,
    min_partitions: u64,
    partition_bytes: u64,
    /// What the log held when the read was asked for; the maximum where nobody says.
    log_range: (u64, u64),
}

impl Read {
    /// The read that resolved options ask for; [`resolve`] makes them so.
    ///
    /// # Errors
    /// An expression that does not parse, a path that is none.
    pub fn of(options: &Options, columns: Vec<Column>) -> Result<Self> {
        let offsets = |name, text: &str| {
            let offsets = Offsets::parse(name, text, options.topic.as_deref(), options.broker_name.as_deref())?;
            Ok::<_, Failure>(match offsets {
                Offsets::ByQueue(bounds) if !bounds.is_empty() => Some(OffsetBound::ByQueue(bounds)),
                _ => None,
            })
        };
        let request = ScanRequest {
            topic: options.topic.clone(),
            queue_ids: options.queue_ids.clone(),
            tags: TagExpression::parse(&options.tags)?,
            sql: options.sql.as_deref().map(Sql92::parse).transpose()?,
            keys: options.keys.clone(),
            start_offset: offsets("startingOffsets", &options.starting_offsets)?,
            end_offset: offsets("endingOffsets", &options.ending_offsets)?,
            start_time: options.starting_timestamp,
            end_time: options.ending_timestamp,
            columns,
            time_unit: TimeUnit::Microsecond,
            broker_name: options.broker_name.clone(),
            verify_crc: options.verify_crc,
            max_body_bytes: options.max_body_bytes,
            ..ScanRequest::default()
        };
        Ok(Self {
            path: local(&options.store_path)?,
            request,
            fail_on_damage: options.fail_on_data_loss,
            only_topic: None,
            is_empty: false,
            commit_log_dirs: options.commit_log_dirs.iter().map(|dir| local(dir)).collect::<Result<_>>()?,
            min_partitions: options.min_partitions,
            partition_bytes: options.partition_bytes,
            log_range: options.log_range,
        })
    }

    /// The read of options, columns by name and filters that were taken.
    ///
    /// # Errors
    /// As [`Options::of`] and [`Read::of`].
    pub fn narrowed(pairs: &[(String, String)], columns: &[String], filters: &[Filter]) -> Result<Self> {
        let columns = crate::options::columns(columns.iter().map(String::as_str))?;
        let mut read = Self::of(&Options::of(pairs)?, columns)?;
        read.take(filters);
        Ok(read)
    }

    /// Opens the store: in the driver to plan, in each task to read, so that new files are seen.
    ///
    /// # Errors
    /// No store there, or none of a kind that is read.
    pub fn open(&self) -> Result<MessageStore> {
        let options = OpenOptions { commit_log_dirs: self.commit_log_dirs.clone(), io: Io::Pread };
        Ok(MessageStore::open(&self.path, &options)?)
    }

    /// Cuts the read into pieces, a task each, for so many `cores`: together they give each message once. In the order of
    /// the log.
    ///
    /// # Errors
    /// A topic that the store does not have, a store that cannot be read.
    pub fn partitions(&self, cores: u64) -> Result<Vec<Piece>> {
        if self.is_empty {
            return Ok(Vec::new());
        }
        let store = self.open()?;
        let mut cut = self.partition_bytes;
        let mut found = self.planned(&store, cut, cores)?;
        cut = cut.min(found.iter().map(|p| p.end - p.from).sum());
        while (found.len() as u64) < self.min_partitions && cut > 1 {
            let scaled = u128::from(cut) * found.len() as u128 / u128::from(self.min_partitions);
            cut = (cut / 2).min(scaled as u64).max(1);
            found = self.planned(&store, cut, cores)?;
        }
        Ok(found)
    }

    /// What the consume queues alone tell of the read; `None` where its messages must be looked at.
    ///
    /// # Errors
    /// As [`partitions`](Self::partitions).
    pub fn listed(&self) -> Result<Option<Listed>> {
        if self.is_empty {
            return Ok(Some(Listed::default()));
        }
        let store = self.open()?;
        let (start, end) = self.log_range;
        let is_whole = (start == u64::MAX || start >= store.log().min_offset()) && self.lost_from(&store) == u64::MAX;
        if self.only_topic.is_some() || !is_whole {
            return Ok(None);
        }
        Ok(Listed::of(&store, &self.request, end)?)
    }

    fn planned(&self, store: &MessageStore, cut: u64, cores: u64) -> Result<Vec<Piece>> {
        let mut plan = Plan::new(store, &self.request, None)?;
        plan.cut(cut, cores)?;
        let (start, end) = self.log_range;
        let held = plan.pieces.into_iter().map(|piece| Piece { end: piece.end.min(end), ..piece });
        // What was there and is not: a task that finds nothing of its piece says so.
        let [before, behind] = [(start, end.min(store.log().min_offset())), (self.lost_from(store), end)]
            .map(|(from, end)| Piece { way: Way::Log, from, end, verify_crc: false });
        Ok([before].into_iter().chain(held).chain([behind]).filter(|piece| piece.from < piece.end).collect())
    }

    /// Where the log now ends, if it has lost its end since the read was asked for; the maximum if not.
    fn lost_from(&self, store: &MessageStore) -> u64 {
        let (end, asked) = (store.log().segments().end(), self.log_range.1);
        if asked != u64::MAX && end < asked { end } else { u64::MAX }
    }
}

/// Options with everything in them that depends on the store as it now is: offsets as numbers. Also checks what would
/// otherwise fail at the first action: that the store, the topic and the columns are there.
///
/// # Errors
/// As [`Options::of`], [`Read::of`] and [`Plan::new`]; a starting offset that has expired.
pub fn resolve(pairs: &[(String, String)], columns: Vec<Column>) -> Result<Pairs> {
    let options = Options::of(pairs)?;
    if options.columns.is_some() && options.row()? != columns {
        let names = |columns: &[Column]| columns.iter().map(|c| c.name()).collect::<Vec<_>>().join(", ");
        let (wanted, got) = (names(&options.row()?), names(&columns));
        let text = format!("schema: expected the columns of the option columns, {wanted}, got {got}");
        return Err(Failure::argument(text));
    }
    let read = Read::of(&options, columns)?;
    let store = read.open()?;
    Plan::new(&store, &read.request, None)?;
    Ok(replaced(pairs, &resolved_offsets(&options, &store)?))
}

fn resolved_offsets(options: &Options, store: &MessageStore) -> Result<Vec<(&'static str, String)>> {
    let (topic, broker) = (options.topic.as_deref(), options.broker_name.as_deref());
    let start = Offsets::parse("startingOffsets", &options.starting_offsets, topic, broker)?;
    let end = Offsets::parse("endingOffsets", &options.ending_offsets, topic, broker)?;
    if (&start, &end) == (&Offsets::Earliest, &Offsets::Latest) {
        return Ok(Vec::new());
    }
    let Some(topic) = topic else {
        return Err(Failure::argument("startingOffsets and endingOffsets need the option topic"));
    };
    let queues: Queues = store.topics()?.remove(topic).unwrap_or_default().into_iter().collect();
    let first: Bounds = start.bounds("startingOffsets", &queues, EARLIEST)?;
    if options.fail_on_data_loss {
        check_not_expired("startingOffsets", &first, &queues)?;
    }
    let last: Bounds = end.bounds("endingOffsets", &queues, LATEST)?;
    Ok(vec![("startingOffsets", told(topic, &first)), ("endingOffsets", told(topic, &last))])
}

/// A directory that every executor sees; executors have other working directories, links stay as they are.
fn local(text: &str) -> Result<PathBuf> {
    let path = match text.strip_prefix("file:") {
        Some(rest) => format!("/{}", rest.trim_start_matches('/')),
        None if text.contains("://") => {
            let got = quoted(text);
            let text = format!("store path: expected a directory that every executor sees under this path, got {got}");
            return Err(Failure::argument(text));
        }
        None => text.to_owned(),
    };
    std::path::absolute(Path::new(&path)).map_err(|e| rmqfast_store::Error::io(&path, e).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_directory_of_this_machine() {
        assert_eq!(local("file:///data/store").expect("local"), Path::new("/data/store"));
        assert!(local("store").expect("local").is_absolute());
        let error = local("s3://bucket/store").expect_err("no directory").to_string();
        assert!(
            error.contains("expected a directory that every executor sees under this path, got 's3://bucket/store'")
        );
    }
}
