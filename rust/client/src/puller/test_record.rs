//! A record for tests, as a broker answers it.
use rmqfast_store::format::host::Host;
use rmqfast_store::format::message::NewMessage;
use std::net::Ipv4Addr;

/// Encodes a record of a queue with these properties.
pub fn record(topic: &str, queue_id: i32, queue_offset: i64, properties: &[u8]) -> Vec<u8> {
    let host = Host { ip: Ipv4Addr::LOCALHOST.into(), port: 1 };
    let mut out = Vec::new();
    let message = NewMessage {
        queue_id,
        flag: 0,
        queue_offset,
        physical_offset: 0,
        sys_flag: 0,
        born_timestamp: 0,
        born_host: host,
        store_timestamp: 0,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: b"body",
        topic,
        properties,
    };
    message.encode(&mut out).expect("a record");
    out
}
