//! Creates the builders of the columns. A builder appends many rows at once, so that each column is one tight loop.
use super::body::BodyColumn;
use super::column::Column;
pub use super::column_builder::{Chunk, store_host};
use super::column_builder::{ColumnBuilder, part};
use super::properties_column::Properties;
use super::request::ScanRequest;
use super::row::Row;
use super::text::{Text, lossy};
use super::text_columns::{Constant, Ids, Property, Runs};
use crate::format::cursor::{i32_at, i64_at};
use crate::format::host::Host;
use crate::store::Damage;
use arrow_array::types::{
    ArrowPrimitiveType, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow_array::{ArrayRef, PrimitiveArray};
use std::sync::Arc;

pub fn builder(column: Column, request: &ScanRequest) -> Box<dyn ColumnBuilder> {
    let unit = request.time_unit.per_millisecond();
    match column {
        Column::Topic => Box::new(Runs::new(topic, |bytes, out| out.extend_from_slice(&lossy(bytes)))),
        Column::BornHost => Box::new(Runs::new(born_host, write_host)),
        Column::StoreHost => Box::new(Runs::new(store_host, write_host)),
        Column::BrokerName => Box::new(Constant { value: request.broker_name.clone(), rows: 0 }),
        // The positions of fixed fields are those in the table of `format::message`.
        Column::QueueId => ints(|bytes, row| i32_at(bytes, row.at as usize + 12)),
        Column::QueueOffset => longs(|bytes, row| i64_at(bytes, row.at as usize + 20)),
        Column::PhysicalOffset => longs(|bytes, row| i64_at(bytes, row.at as usize + 28)),
        Column::MsgId => Box::new(Ids::new(true)),
        Column::OffsetMsgId => Box::new(Ids::new(false)),
        Column::Tags => Box::new(Property { text: Text::default(), span: |row: &Row| row.tags }),
        Column::Keys => Box::new(Property { text: Text::default(), span: |row: &Row| row.keys }),
        Column::Body => {
            let cap = request.max_body_bytes.min(ScanRequest::MAX_MAX_BODY_BYTES);
            Box::new(BodyColumn::new(cap, request.checks_bodies))
        }
        Column::Properties => Box::new(Properties::new(request.property_names.clone())),
        Column::BornTimestamp => timestamps(unit, |bytes, row| i64_at(bytes, row.at as usize + 40)),
        Column::StoreTimestamp => {
            timestamps(unit, |bytes, row| i64_at(bytes, row.at as usize + row.layout.store_timestamp_at()))
        }
        Column::Flag => ints(|bytes, row| i32_at(bytes, row.at as usize + 16)),
        Column::SysFlag => ints(|_, row| Some(row.layout.sys_flag)),
        // Counted back from the body, since the hosts before this field have no fixed length.
        Column::ReconsumeTimes => ints(|bytes, row| i32_at(bytes, (row.at + row.layout.body) as usize - 16)),
        Column::PreparedTransactionOffset => {
            longs(|bytes, row| i64_at(bytes, (row.at + row.layout.body) as usize - 12))
        }
        Column::StoreSize => ints(|_, row| Some(row.layout.total as i32)),
        Column::BodyCrc => ints(|bytes, row| i32_at(bytes, row.at as usize + 8)),
    }
}

type Long = fn(&[u8], &Row) -> Option<i64>;

fn ints(get: impl Fn(&[u8], &Row) -> Option<i32> + Send + 'static) -> Box<dyn ColumnBuilder> {
    Box::new(Numbers::<Int32Type, _> { values: Vec::new(), get })
}

fn longs(get: impl Fn(&[u8], &Row) -> Option<i64> + Send + 'static) -> Box<dyn ColumnBuilder> {
    Box::new(Numbers::<Int64Type, _> { values: Vec::new(), get })
}

fn timestamps(unit: i64, get: Long) -> Box<dyn ColumnBuilder> {
    match unit {
        1 => Box::new(Numbers::<TimestampMillisecondType, _> { values: Vec::new(), get }),
        _ => {
            // Saturates, since a damaged time may be close to the limits of i64.
            let get = move |bytes: &[u8], row: &Row| get(bytes, row).map(|ms| ms.saturating_mul(unit));
            Box::new(Numbers::<TimestampMicrosecondType, _> { values: Vec::new(), get })
        }
    }
}

#[inline]
fn topic<'a>(bytes: &'a [u8], row: &Row) -> &'a [u8] {
    part(bytes, (row.at + row.layout.topic) as usize, row.layout.topic_len as usize)
}

#[inline]
fn born_host<'a>(bytes: &'a [u8], row: &Row) -> &'a [u8] {
    part(bytes, row.at as usize + 48, row.layout.store_timestamp_at() - 48)
}

/// Appends a stored host as a string. Appends nothing if the bytes are invalid.
pub fn write_host(bytes: &[u8], out: &mut Vec<u8>) {
    if let Some(host) = Host::decode(bytes) {
        out.extend_from_slice(host.to_string().as_bytes());
    }
}

struct Numbers<T: ArrowPrimitiveType, F> {
    values: Vec<T::Native>,
    get: F,
}

impl<T: ArrowPrimitiveType, F: Fn(&[u8], &Row) -> Option<T::Native> + Send> ColumnBuilder for Numbers<T, F> {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        self.values.extend(chunk.rows.iter().map(|row| (self.get)(chunk.bytes, row).unwrap_or_default()));
    }
    fn len_bytes(&self) -> usize {
        size_of_val(&self.values[..])
    }
    fn finish(&mut self) -> ArrayRef {
        let capacity = self.values.len();
        // Reserve for the next batch, which is probably as large.
        let values = std::mem::replace(&mut self.values, Vec::with_capacity(capacity));
        // No null bitmap, since every record has these fields.
        let array = PrimitiveArray::<T>::new(values.into(), None);
        Arc::new(array.with_data_type(column_type::<T>()))
    }
}

/// Returns the column's Arrow type. The type of timestamps has a time zone, which their Rust type does not include.
fn column_type<T: ArrowPrimitiveType>() -> arrow_schema::DataType {
    match T::DATA_TYPE {
        arrow_schema::DataType::Timestamp(unit, _) => arrow_schema::DataType::Timestamp(unit, Some("UTC".into())),
        other => other,
    }
}
