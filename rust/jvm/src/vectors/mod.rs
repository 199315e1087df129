//! Columns as Spark's vectors read them: arrays of numbers, and views of text by address and length.
//!
//! A view points into the block of a [`RowSource`](rmqfast_store::scan::RowSource) where the stored bytes are right already,
//! else into a buffer of its vector. All are valid until the batch is filled again.
mod batch;
mod bodies;
mod map;
mod numbers;
mod texts;
mod views;

pub use batch::Batch;

use map::Map;
use numbers::Numbers;
use rmqfast_store::scan::columns::{Chunk, write_host};
use rmqfast_store::scan::text::lossy;
use rmqfast_store::scan::{Column, ScanRequest};
use texts::{Constant, Ids, Property, Runs};

/// A column of a batch.
trait Vector: Send {
    /// Forgets its values, keeps its memory.
    fn clear(&mut self);
    /// Appends a value for each row.
    fn extend(&mut self, chunk: Chunk<'_>);
    /// The addresses that Java reads from; nothing may be appended any more.
    fn seal(&mut self, addresses: &mut Vec<i64>);
}

/// The vector of `column`; the body has its own.
fn vector(column: Column, request: &ScanRequest) -> Option<Box<dyn Vector>> {
    let micros = |milliseconds: i64| milliseconds.saturating_mul(1000);
    Some(match column {
        Column::Body => return None,
        Column::Topic => Box::new(Runs::new(|m| m.topic(), |bytes, out| out.extend_from_slice(&lossy(bytes)))),
        Column::BornHost => Box::new(Runs::new(|m| m.born_host(), write_host)),
        Column::StoreHost => Box::new(Runs::new(|m| m.store_host(), write_host)),
        Column::BrokerName => Box::new(Constant::new(request.broker_name.clone())),
        Column::MsgId => Box::new(Ids::new(true)),
        Column::OffsetMsgId => Box::new(Ids::new(false)),
        Column::Tags => Box::new(Property::new(|row| row.tags)),
        Column::Keys => Box::new(Property::new(|row| row.keys)),
        Column::Properties => Box::new(Map::default()),
        Column::QueueId => Box::new(Numbers::new(|m| m.queue_id())),
        Column::QueueOffset => Box::new(Numbers::new(|m| m.queue_offset())),
        Column::PhysicalOffset => Box::new(Numbers::new(|m| m.physical_offset())),
        Column::BornTimestamp => Box::new(Numbers::new(move |m| micros(m.born_timestamp()))),
        Column::StoreTimestamp => Box::new(Numbers::new(move |m| micros(m.store_timestamp()))),
        Column::Flag => Box::new(Numbers::new(|m| m.flag())),
        Column::SysFlag => Box::new(Numbers::new(|m| m.layout().sys_flag)),
        Column::ReconsumeTimes => Box::new(Numbers::new(|m| m.reconsume_times())),
        Column::PreparedTransactionOffset => Box::new(Numbers::new(|m| m.prepared_transaction_offset())),
        Column::StoreSize => Box::new(Numbers::new(|m| m.layout().total as i32)),
        Column::BodyCrc => Box::new(Numbers::new(|m| m.body_crc())),
    })
}
