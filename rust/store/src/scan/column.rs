//! The columns of a scan, in order, their Arrow types, and the interface of their builders.
use super::row::Row;
use crate::format::message::Message;
use crate::store::Damage;
use crate::{Error, Result};
use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Column {
    Topic,
    BrokerName,
    QueueId,
    QueueOffset,
    PhysicalOffset,
    MsgId,
    OffsetMsgId,
    Tags,
    Keys,
    Body,
    Properties,
    BornTimestamp,
    StoreTimestamp,
    BornHost,
    StoreHost,
    Flag,
    SysFlag,
    ReconsumeTimes,
    PreparedTransactionOffset,
    StoreSize,
    BodyCrc,
}

/// Unit of the two timestamp columns. Spark accepts microseconds only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    #[default]
    Millisecond,
    Microsecond,
}

impl TimeUnit {
    pub fn per_millisecond(self) -> i64 {
        match self {
            Self::Millisecond => 1,
            Self::Microsecond => 1000,
        }
    }
}

impl Column {
    /// All columns, in the order of a row.
    pub const ALL: [Self; 21] = [
        Self::Topic,
        Self::BrokerName,
        Self::QueueId,
        Self::QueueOffset,
        Self::PhysicalOffset,
        Self::MsgId,
        Self::OffsetMsgId,
        Self::Tags,
        Self::Keys,
        Self::Body,
        Self::Properties,
        Self::BornTimestamp,
        Self::StoreTimestamp,
        Self::BornHost,
        Self::StoreHost,
        Self::Flag,
        Self::SysFlag,
        Self::ReconsumeTimes,
        Self::PreparedTransactionOffset,
        Self::StoreSize,
        Self::BodyCrc,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::BrokerName => "broker_name",
            Self::QueueId => "queue_id",
            Self::QueueOffset => "queue_offset",
            Self::PhysicalOffset => "physical_offset",
            Self::MsgId => "msg_id",
            Self::OffsetMsgId => "offset_msg_id",
            Self::Tags => "tags",
            Self::Keys => "keys",
            Self::Body => "body",
            Self::Properties => "properties",
            Self::BornTimestamp => "born_timestamp",
            Self::StoreTimestamp => "store_timestamp",
            Self::BornHost => "born_host",
            Self::StoreHost => "store_host",
            Self::Flag => "flag",
            Self::SysFlag => "sys_flag",
            Self::ReconsumeTimes => "reconsume_times",
            Self::PreparedTransactionOffset => "prepared_transaction_offset",
            Self::StoreSize => "store_size",
            Self::BodyCrc => "body_crc",
        }
    }

    pub fn of_name(name: &str) -> Result<Self> {
        let column = Self::ALL.into_iter().find(|c| c.name() == name);
        column.ok_or_else(|| Error::unknown("column", name, Self::ALL.iter().map(|c| c.name())))
    }

    pub fn data_type(self, unit: TimeUnit) -> DataType {
        match self {
            Self::Topic
            | Self::BrokerName
            | Self::MsgId
            | Self::OffsetMsgId
            | Self::Tags
            | Self::Keys
            | Self::BornHost
            | Self::StoreHost => DataType::Utf8,
            Self::Body => DataType::Binary,
            Self::Properties => map_type(),
            Self::BornTimestamp | Self::StoreTimestamp => timestamp_type(unit),
            Self::QueueOffset | Self::PhysicalOffset | Self::PreparedTransactionOffset => DataType::Int64,
            Self::QueueId | Self::Flag | Self::SysFlag | Self::ReconsumeTimes | Self::StoreSize | Self::BodyCrc => {
                DataType::Int32
            }
        }
    }

    /// Returns whether the column's value comes from the property string.
    pub fn needs_properties(self) -> bool {
        matches!(self, Self::MsgId | Self::Tags | Self::Keys)
    }
}

/// Creates the schema of `columns`. Every field is nullable, as Spark requires.
pub fn schema(columns: &[Column], unit: TimeUnit) -> SchemaRef {
    let fields: Fields = columns.iter().map(|c| Field::new(c.name(), c.data_type(unit), true)).collect();
    Arc::new(Schema::new(fields))
}

/// Returns the type `map<utf8, utf8>`, with the field names that Arrow C++ and Spark use.
fn map_type() -> DataType {
    let entries = DataType::Struct(map_fields());
    DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
}

pub fn map_fields() -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)])
}

fn timestamp_type(unit: TimeUnit) -> DataType {
    let unit = match unit {
        TimeUnit::Millisecond => arrow_schema::TimeUnit::Millisecond,
        TimeUnit::Microsecond => arrow_schema::TimeUnit::Microsecond,
    };
    DataType::Timestamp(unit, Some("UTC".into()))
}

/// A block of the log, and rows that point into its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    pub bytes: &'a [u8],
    pub rows: &'a [Row],
}

impl<'a> Chunk<'a> {
    #[inline]
    pub fn messages(self) -> impl Iterator<Item = Message<'a>> {
        self.rows.iter().filter_map(move |row| row.message(self.bytes))
    }
}

pub trait ColumnBuilder: Send {
    fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>);
    fn len_bytes(&self) -> usize;
    fn finish(&mut self) -> ArrayRef;
}

/// Returns a part of a record, or an empty slice if `bytes` is too short.
#[inline]
pub(super) fn part(bytes: &[u8], at: usize, len: usize) -> &[u8] {
    bytes.get(at..at + len).unwrap_or_default()
}

/// Returns the store host of a row. The store host is between the store timestamp and the last 16 bytes before the
/// body.
#[inline]
pub fn store_host<'a>(bytes: &'a [u8], row: &Row) -> &'a [u8] {
    let at = row.layout.store_timestamp_at() + 8;
    part(bytes, row.at as usize + at, row.layout.body as usize - 16 - at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_columns() {
        for column in Column::ALL {
            assert_eq!(Column::of_name(column.name()).expect("known"), column);
        }
        let error = Column::of_name("boddy").expect_err("unknown").to_string();
        assert_eq!(error, "unknown column 'boddy'; did you mean body?");
    }
}
