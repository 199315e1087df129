//! A batch read or a stream, of store directories or of a cluster's topics.
//!
//! The option `nameServer` selects a cluster, `storePath` one store directory or several.
use crate::error::Result;
use crate::origin::piece::TopicPiece;
use crate::origin::{BrokerWay, Via};
use crate::request::column_warning::column_warning;
use crate::request::options::{Kind, Options, Pairs, names_a_cluster, replace_options};
use crate::request::row_columns::RowColumns;
use crate::store::piece::StorePiece;
use crate::store::read::check_io;
use crate::store::stores_read::{StoresRead, resolve_stores};
use crate::store::stores_stream::open_store_stream;
use crate::stream::{Level, Stream};
use crate::topic::read::TopicRead;
use crate::topic::stream::TopicStream;
use rmqfast_client::cluster::CheckInterrupt;
use rmqfast_store::scan::push_down::Filter;
use rmqfast_store::scan::{QueueCounts, ScanRequest};
use std::fmt;
use std::sync::Arc;

#[derive(Debug)]
pub enum Read {
    Stores(StoresRead),
    Topic(Box<TopicRead>),
}

/// Log lines, each with its level.
pub type Lines = Vec<(Level, String)>;

pub fn batch_kind(pairs: &[(String, String)]) -> Kind {
    if names_a_cluster(pairs) { Kind::ColumnarTopic } else { Kind::Columnar }
}

/// Resolves options against the store's current state; see [`resolve_stores`].
///
/// Options of topics stay unchanged because their offsets are fixed when tasks are planned. If brokers' logs may be
/// read, the option `ways` is added with the decision for each broker. Errors appear here instead of at Spark's first
/// action. Also returns log lines.
///
/// # Errors
/// Fails like [`resolve_stores`] and [`TopicRead::check`].
pub fn resolve(
    pairs: &[(String, String)],
    fields: &[String],
    interrupt: Arc<CheckInterrupt>,
) -> Result<(Pairs, Lines)> {
    if !names_a_cluster(pairs) {
        let sql = pairs.iter().find(|(name, _)| name.eq_ignore_ascii_case("sql"));
        let warning = sql.and_then(|(_, sql)| column_warning(sql)).map(|text| (Level::Warning, text));
        return Ok((resolve_stores(pairs, fields)?, warning.into_iter().collect()));
    }
    let options = Options::of(Kind::ColumnarTopic, pairs)?;
    RowColumns::of_schema(&options, fields)?.check_agreed(&options)?;
    let mut read = TopicRead::of(Kind::ColumnarTopic, pairs, &[])?;
    read.cluster.interrupt = interrupt;
    // `pieces` is set only by the driver, which resolved the options before it planned
    if read.planned.is_some() {
        return Ok((pairs.to_vec(), Vec::new()));
    }
    if read.via == Via::Pull {
        let warnings = read.check()?;
        return Ok((pairs.to_vec(), warnings.into_iter().map(|text| (Level::Warning, text)).collect()));
    }
    // decided once and stored in the options, so that every later plan of this read decides alike
    let mut planned = read.plan()?;
    planned.log.warn(read.request_warnings());
    Ok((replace_options(pairs, &[("ways", BrokerWay::to_option(&planned.ways))]), planned.log.take()))
}

/// Opens a stream of the columns of a schema, see [`RowColumns::of_schema`].
///
/// # Errors
/// See [`TopicRead::of`] and [`open_store_stream`]. Also an option that streams do not have, or columns that differ from
/// the option `columns`.
pub fn open_stream(
    pairs: &[(String, String)],
    fields: &[String],
    interrupt: Arc<CheckInterrupt>,
) -> Result<Box<dyn Stream>> {
    let is_topic = names_a_cluster(pairs);
    let options = Options::of(if is_topic { Kind::TopicStream } else { Kind::StoreStream }, pairs)?;
    if !is_topic {
        check_io(&options)?;
    }
    RowColumns::of_plan(&options, fields)?.check_agreed(&options)?;
    if !is_topic {
        return open_store_stream(pairs, interrupt);
    }
    let mut read = TopicRead::of(Kind::TopicStream, pairs, &[])?;
    read.cluster.interrupt = interrupt;
    Ok(Box::new(TopicStream::new(read)?))
}

/// Builds a read of topics, see [`Read::of`].
///
/// # Errors
/// Fails like [`TopicRead::of`].
pub fn topic_read(pairs: &[(String, String)], fields: &[String], filters: &[Filter]) -> Result<TopicRead> {
    let mut read = TopicRead::of(Kind::ColumnarTopic, pairs, &[])?;
    // Spark may prune columns, so there may be fewer than in the option `columns`, which was checked before
    let row = RowColumns::of_plan(&Options::of(Kind::ColumnarTopic, pairs)?, fields)?;
    (read.request.scan.columns, read.request.scan.decode) = (row.columns, row.decode);
    read.take(filters);
    Ok(read)
}

/// Formats the location, the messages and the filters, but no credentials.
impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stores(reads) => write!(f, "{reads}")?,
            Self::Topic(read) => {
                write!(f, "{} at {}", read.topics, read.cluster.name_servers.join(";"))?;
                let subscription = &read.request.subscription;
                if subscription.is_filtered() {
                    write!(f, ", {} {}", subscription.expression_type, subscription.expression)?;
                }
                if let Via::Mirror(directory) = &read.via {
                    write!(f, ", out of the copies in {}", directory.display())?;
                }
                for way in read.ways.iter().flatten() {
                    write!(f, ", {way}")?;
                }
            }
        }
        let Some(scan) = self.scan() else { return Ok(()) };
        if let Some(topic) = &scan.topic {
            write!(f, ", topic {topic}")?;
        }
        if !scan.tags.is_all() {
            write!(f, ", tags {}", scan.tags.tags().join(" || "))?;
        }
        for (name, values) in
            [("keys", &scan.keys), ("keysPrefix", &scan.keys_prefix.clone().map(|prefix| vec![prefix]))]
        {
            if let Some(values) = values {
                write!(f, ", {name} {}", values.join(", "))?;
            }
        }
        Ok(())
    }
}

impl Read {
    fn scan(&self) -> Option<&ScanRequest> {
        match self {
            Self::Stores(reads) => reads.request(),
            Self::Topic(read) => Some(&read.request.scan),
        }
    }

    /// Builds a read of the columns of a schema, see [`RowColumns::of_plan`], from resolved options and from the filters that
    /// Spark pushed down.
    ///
    /// # Errors
    /// Fails like [`StoresRead::of`] and [`TopicRead::of`].
    pub fn of(pairs: &[(String, String)], fields: &[String], filters: &[Filter]) -> Result<Self> {
        if !names_a_cluster(pairs) {
            return Ok(Self::Stores(StoresRead::of(pairs, fields, filters)?));
        }
        Ok(Self::Topic(Box::new(topic_read(pairs, fields, filters)?)))
    }

    /// Lets `interrupt` end waits for the answers of brokers.
    pub fn with_interrupt(mut self, interrupt: Arc<CheckInterrupt>) -> Self {
        if let Self::Topic(read) = &mut self {
            read.cluster.interrupt = interrupt;
        }
        self
    }

    /// Narrows the read by filters. Returns for each filter whether the read applies it.
    pub fn take(&mut self, filters: &[Filter]) -> Vec<bool> {
        match self {
            Self::Stores(reads) => reads.take(filters),
            Self::Topic(read) => read.take(filters),
        }
    }

    /// Counts the messages from the bounds of queues alone. `None` if the count needs the messages themselves.
    ///
    /// # Errors
    /// Fails like [`StoresRead::known_counts`] and [`TopicRead::known_counts`].
    pub fn known_counts(&self) -> Result<Option<QueueCounts>> {
        match self {
            Self::Stores(reads) => reads.known_counts(),
            Self::Topic(read) => read.known_counts(),
        }
    }

    /// Returns the serialized pieces for the tasks, planned for `cores` cores, and log lines.
    ///
    /// # Errors
    /// Fails like [`StoresRead::partitions`] and [`TopicRead::plan`].
    pub fn pieces(&self, cores: u64) -> Result<(Vec<Vec<u8>>, Lines)> {
        match self {
            Self::Stores(reads) => {
                let pieces = reads.partitions(cores)?;
                Ok((pieces.iter().map(StorePiece::to_bytes).collect(), Vec::new()))
            }
            Self::Topic(read) => {
                let mut planned = read.plan()?;
                Ok((planned.pieces.iter().map(TopicPiece::to_bytes).collect(), planned.log.take()))
            }
        }
    }
}
