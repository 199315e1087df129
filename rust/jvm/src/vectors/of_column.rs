//! Creates the vector of each column.
use super::map::Map;
use super::numbers::Numbers;
use super::texts::{Constant, Ids, Property, Runs};
use super::vector::Vector;
use rmqfast_store::scan::columns::write_host;
use rmqfast_store::scan::text::lossy;
use rmqfast_store::scan::{Column, ScanRequest};

/// Creates the vector of `column`; `None` for the body, which [`Batch`](super::Batch) handles itself.
pub fn vector(column: Column, request: &ScanRequest) -> Option<Box<dyn Vector>> {
    // Spark's timestamps are microseconds; saturating, since a record may hold any number
    let micros = |milliseconds: i64| milliseconds.saturating_mul(1000);
    Some(match column {
        // the body limits the number of rows of a batch; see `Batch::fill`
        Column::Body => return None,
        Column::Topic => Box::new(Runs::new(|m| m.topic(), |bytes, out| out.extend_from_slice(&lossy(bytes)))),
        // consecutive rows mostly have the same topic, producer and broker
        Column::BornHost => Box::new(Runs::new(|m| m.born_host(), write_host)),
        Column::StoreHost => Box::new(Runs::new(|m| m.store_host(), write_host)),
        Column::BrokerName => Box::new(Constant::new(request.broker_name.clone())),
        Column::MsgId => Box::new(Ids::new(true)),
        Column::OffsetMsgId => Box::new(Ids::new(false)),
        Column::Tags => Box::new(Property::new(|row| row.tags)),
        Column::Keys => Box::new(Property::new(|row| row.keys)),
        Column::Properties => Box::new(Map::new(request.property_names.clone())),
        Column::QueueId => Box::new(Numbers::new(|m| m.queue_id())),
        Column::QueueOffset => Box::new(Numbers::new(|m| m.queue_offset())),
        Column::PhysicalOffset => Box::new(Numbers::new(|m| m.physical_offset())),
        Column::BornTimestamp => Box::new(Numbers::new(move |m| micros(m.born_timestamp()))),
        Column::StoreTimestamp => Box::new(Numbers::new(move |m| micros(m.store_timestamp()))),
        Column::Flag => Box::new(Numbers::new(|m| m.flag())),
        Column::SysFlag => Box::new(Numbers::new(|m| m.layout().sys_flag)),
        Column::ReconsumeTimes => Box::new(Numbers::new(|m| m.reconsume_times())),
        Column::PreparedTransactionOffset => Box::new(Numbers::new(|m| m.prepared_transaction_offset())),
        // a record's size is an int in Java, too
        Column::StoreSize => Box::new(Numbers::new(|m| m.layout().total as i32)),
        Column::BodyCrc => Box::new(Numbers::new(|m| m.body_crc())),
    })
}
