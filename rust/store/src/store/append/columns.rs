//! Reads the rows to append from an Arrow record batch.
use super::lists::join_texts;
use super::pairs::Pairs;
use super::row::{Pair, Row, Rows};
use super::values::{Bytes, integers};
use crate::format::compression::TYPE_MASK;
use crate::format::host::Host;
use crate::format::message::COMPRESSED;
use crate::{Error, Result};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::DataType;
use std::net::SocketAddr;

pub const STORED: [&str; 12] = [
    "topic",
    "body",
    "tags",
    "keys",
    "properties",
    "queue_id",
    "flag",
    "born_timestamp",
    "born_host",
    "sys_flag",
    "reconsume_times",
    "prepared_transaction_offset",
];
/// Columns of a scan that an append ignores, because the append assigns their values.
pub const IGNORED: [&str; 9] = [
    "broker_name",
    "queue_offset",
    "physical_offset",
    "msg_id",
    "offset_msg_id",
    "store_timestamp",
    "store_host",
    "store_size",
    "body_crc",
];

#[derive(Clone, Debug)]
pub struct Columns {
    len: usize,
    topic: Bytes,
    body: Bytes,
    tags: Option<Bytes>,
    keys: Option<Bytes>,
    properties: Option<Pairs>,
    queue_id: Option<Int64Array>,
    flag: Option<Int64Array>,
    born_timestamp: Option<Int64Array>,
    born_host: Option<Vec<Option<Host>>>,
    sys_flag: Option<Int64Array>,
    reconsume_times: Option<Int64Array>,
    prepared_transaction_offset: Option<Int64Array>,
}

impl Columns {
    /// Reads a batch. Fails with [`Error::Unknown`] for an unknown column, with [`Error::Invalid`] for a wrong type or a
    /// missing column.
    pub fn new(batch: &RecordBatch) -> Result<Self> {
        check_names(batch)?;
        let bytes = |name| column(batch, name).map(|array| Bytes::new(name, array)).transpose();
        let integers = |name| column(batch, name).map(|array| integers(name, array)).transpose();
        let missing = |name| Error::invalid("columns", format!("one called {name}"), "none, or nothing but nulls");
        Ok(Self {
            len: batch.num_rows(),
            topic: bytes("topic")?.ok_or_else(|| missing("topic"))?,
            body: bytes("body")?.ok_or_else(|| missing("body"))?,
            tags: bytes("tags")?,
            keys: column(batch, "keys").map(|array| join_texts("keys", array)).transpose()?,
            properties: column(batch, "properties").map(|array| Pairs::new(array)).transpose()?,
            queue_id: integers("queue_id")?,
            flag: integers("flag")?,
            born_timestamp: integers("born_timestamp")?,
            born_host: bytes("born_host")?.map(|texts| hosts(&texts, batch.num_rows())).transpose()?,
            sys_flag: integers("sys_flag")?,
            reconsume_times: integers("reconsume_times")?,
            prepared_transaction_offset: integers("prepared_transaction_offset")?,
        })
    }
}

impl Rows for Columns {
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn row(&self, index: usize) -> Row<'_> {
        let integer = |column: &Option<Int64Array>| {
            column.as_ref().filter(|array| array.is_valid(index)).map(|array| array.value(index))
        };
        // An empty tag or key counts as no tag or key, as in Java's `Message`.
        Row {
            topic: self.topic.value(index),
            body: self.body.value(index),
            tags: self.tags.as_ref().and_then(|column| column.value(index)).filter(|tag| !tag.is_empty()),
            keys: self.keys.as_ref().and_then(|column| column.value(index)).filter(|keys| !keys.is_empty()),
            pairs: self.properties.as_ref().map_or(0..0, |pairs| pairs.of_row(index)),
            queue_id: integer(&self.queue_id).unwrap_or(0),
            flag: integer(&self.flag).unwrap_or(0),
            born_timestamp: integer(&self.born_timestamp),
            born_host: self.born_host.as_ref().and_then(|hosts| hosts[index]),
            // A scan returns decompressed bodies, so the compression flags do not apply.
            sys_flag: integer(&self.sys_flag).unwrap_or(0) & !i64::from(COMPRESSED | TYPE_MASK),
            reconsume_times: integer(&self.reconsume_times).unwrap_or(0),
            prepared_transaction_offset: integer(&self.prepared_transaction_offset).unwrap_or(0),
            is_due: false,
        }
    }

    #[inline]
    fn pair(&self, index: usize) -> Pair<'_> {
        self.properties.as_ref().map_or((&[], None), |pairs| pairs.pair(index))
    }
}

/// Parses hosts as a scan writes them. A run of equal strings is parsed once.
fn hosts(texts: &Bytes, len: usize) -> Result<Vec<Option<Host>>> {
    let mut last: (&[u8], Option<Host>) = (&[], None);
    let host = |row| {
        let Some(text) = texts.value(row) else { return Ok(None) };
        // Most rows have the same host as the row before.
        if last.0 != text {
            let address = std::str::from_utf8(text).ok().and_then(|text| text.parse::<SocketAddr>().ok());
            let expected = format!("in row {row} 'ip:port' or '[ip6]:port'");
            let wrong = || Error::invalid("born_host", expected, format!("{:?}", String::from_utf8_lossy(text)));
            last = (text, Some(address.ok_or_else(wrong)?.into()));
        }
        Ok(last.1)
    };
    (0..len).map(host).collect()
}

/// Returns the column `name`. A column that has only nulls counts as missing, because its type is meaningless.
fn column<'a>(batch: &'a RecordBatch, name: &str) -> Option<&'a ArrayRef> {
    batch.column_by_name(name).filter(|array| *array.data_type() != DataType::Null)
}

fn check_names(batch: &RecordBatch) -> Result<()> {
    let schema = batch.schema_ref();
    for field in schema.fields() {
        let name = field.name().as_str();
        // Row numbers of pandas are no part of a message.
        if is_unnamed_index(name) {
            continue;
        }
        if !STORED.contains(&name) && !IGNORED.contains(&name) {
            return Err(Error::unknown("column", name, STORED));
        }
    }
    Ok(())
}

/// Returns whether a column is the unnamed index that pandas writes for a filtered or sorted frame. Its values are
/// row numbers.
fn is_unnamed_index(name: &str) -> bool {
    let level = name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__"));
    level.is_some_and(|level| !level.is_empty() && level.bytes().all(|digit| digit.is_ascii_digit()))
}
