//! Any header and any body, for a broker's data plane behind a socket: sends, batches, pulls and offsets. Whatever comes, the
//! connection ends once its peer has ended it, and what was answered can be read.
//!
//! The first byte says how the header is written, the next two how long it is; the body is the rest.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_broker::{BrokerOptions, DataPlane, EARLY_PULL_WAIT, Group, Settings, Topic};
use rmqfast_remoting::{Command, Limits, Mailbox, RESPONSE, Server, ServerOptions, frame};
use rmqfast_store::format::host::Host;
use rmqfast_store::store::append::{AppendOptions, Appender};
use rmqfast_store::store::pull::GetLimits;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

/// One for all inputs, as a broker meets them one after the other.
static BROKER: LazyLock<(Server, TempDir)> = LazyLock::new(broker);

fuzz_target!(|bytes: &[u8]| {
    let Some((&[kind, high, low], rest)) = bytes.split_first_chunk() else { return };
    let header = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
    let mark = u32::from(kind & 1) << 24 | header as u32;
    let request = [&(4 + rest.len() as u32).to_be_bytes()[..], &mark.to_be_bytes(), rest].concat();
    let mut stream = TcpStream::connect(BROKER.0.address()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    // it may be gone already: what it takes for no frame ends a connection
    let _ = stream.write_all(&request).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answers = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answers) {
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "the connection was not ended");
    }
    check(&answers);
});

fn check(answers: &[u8]) {
    let (limits, mut rest) = (Limits::default(), answers);
    while let Some((frame, length)) = frame::first(rest, &limits).expect("answers are frames") {
        let answer = Command::decode(&frame, &limits).expect("an answer that can be read");
        assert_eq!(answer.flag & RESPONSE, RESPONSE);
        rest = &rest[length..];
    }
}

fn broker() -> (Server, TempDir) {
    let store = tempfile::tempdir().expect("a directory");
    let append = AppendOptions {
        file_size: 8 << 20,
        queue_file_size: 20_000,
        index_slots: 100,
        index_entries: 400,
        ..AppendOptions::default()
    };
    let appender = Arc::new(Appender::open(store.path(), append).expect("a store"));
    let control = Arc::new(Mailbox::new(100));
    let plane = Arc::new(DataPlane::new(appender, (append.flush, PATIENCE), options(), control).expect("a data plane"));
    let topic = Topic { read_queues: 4, write_queues: 4, perm: 6, is_multi_tag: false, is_ordered: false };
    for (topic_name, group) in [("wire", "wire_push"), ("T", "g")] {
        plane.state().tables.put_topic(topic_name, topic);
        plane
            .state()
            .tables
            .put_group(group, Group { consume_enable: true, broadcast_enable: true, broker_id: 0, slow_broker_id: 1 });
    }
    (Server::bind("127.0.0.1:0", ServerOptions::default(), plane).expect("listening"), store)
}

fn options() -> BrokerOptions {
    BrokerOptions {
        broker_name: "b".into(),
        cluster_name: "DefaultCluster".into(),
        address: Host { ip: Ipv4Addr::LOCALHOST.into(), port: 10_911 },
        region: "DefaultRegion".into(),
        trace_on: true,
        max_message_size: 4 << 20,
        max_offsets: 1000,
        new_names: (10_000, 100),
        vip_port: None,
        hands_over_all: false,
        early_pull_wait: EARLY_PULL_WAIT,
        is_slave: false,
        sync_replication: None,
        settings: Settings {
            slave_read: true,
            checks_offsets_in_slave: false,
            limits: GetLimits::of_broker(1 << 40),
            long_polling: true,
            short_polling: Duration::from_secs(1),
            property_filter: true,
            rejects_transactions: false,
            accepts_sends_from: 0,
            checks_bodies: true,
        },
    }
}
