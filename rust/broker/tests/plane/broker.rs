//! A data plane behind a listener, and a client at the other end of a socket.
use rmqfast_broker::{BrokerOptions, DataPlane, EARLY_PULL_WAIT, Group, Settings, Subscription, Topic};
use rmqfast_remoting::{
    Command, Header, Limits, Mailbox, OwnedCommand, SerializeType, Server, ServerOptions, Value, frame,
};
use rmqfast_store::format::host::Host;
use rmqfast_store::format::message::Message;
use rmqfast_store::store::append::{AppendOptions, Appender, Flush};
use rmqfast_store::store::pull::GetLimits;
use rmqfast_waiting::{PATIENCE, until};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const RW: Topic = Topic { read_queues: 4, write_queues: 4, perm: 6, is_multi_tag: false, is_ordered: false };
pub const GROUP: Group = Group { consume_enable: true, broadcast_enable: true, broker_id: 0, slow_broker_id: 1 };
pub const SEND: i32 = 10;
pub const PULL: i32 = 11;
pub const SEND_V2: i32 = 310;
pub const SEND_BATCH: i32 = 320;

/// The parts of a broker that this crate has.
pub struct Broker {
    pub plane: Arc<DataPlane>,
    pub control: Arc<Mailbox>,
    pub appender: Arc<Appender>,
    server: Server,
    store: TempDir,
}

/// Starts a broker with default options, topic `T` with four queues and group `g`.
pub fn broker() -> Broker {
    broker_with(|_| {}, AppendOptions::default())
}

pub fn broker_with(change: impl FnOnce(&mut BrokerOptions), append: AppendOptions) -> Broker {
    let store = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let append = AppendOptions {
        file_size: append.file_size.min(8 << 20),
        queue_file_size: 20_000,
        index_slots: 100,
        index_entries: 400,
        ..append
    };
    let appender = Arc::new(Appender::open(store.path(), append).expect("a store"));
    let mut options = options();
    change(&mut options);
    let control = Arc::new(Mailbox::new(100));
    let flush = (append.flush, PATIENCE);
    let plane = Arc::new(DataPlane::new(appender.clone(), flush, options, control.clone()).expect("a data plane"));
    plane.state().tables.put_topic("T", RW);
    plane.state().tables.put_group("g", GROUP);
    let server = Server::bind("127.0.0.1:0", ServerOptions::default(), plane.clone()).expect("listening");
    Broker { plane, control, appender, server, store }
}

fn options() -> BrokerOptions {
    BrokerOptions {
        broker_name: "b".into(),
        cluster_name: "DefaultCluster".into(),
        address: Host { ip: Ipv4Addr::LOCALHOST.into(), port: 10_911 },
        region: "DefaultRegion".into(),
        trace_on: true,
        max_message_size: 4 << 20,
        max_offsets: 1_000_000,
        new_names: (10_000, 100),
        vip_port: None,
        hands_over_all: false,
        is_slave: false,
        sync_replication: None,
        early_pull_wait: EARLY_PULL_WAIT,
        settings: Settings {
            limits: GetLimits::of_broker(1 << 40),
            long_polling: true,
            short_polling: Duration::from_secs(1),
            property_filter: true,
            checks_bodies: false,
            slave_read: false,
            checks_offsets_in_slave: false,
            rejects_transactions: false,
            accepts_sends_from: 0,
        },
    }
}

pub fn sync() -> AppendOptions {
    AppendOptions { flush: Flush::Sync, ..AppendOptions::default() }
}

impl Broker {
    pub fn path(&self) -> &std::path::Path {
        self.store.path()
    }

    pub fn connect(&self) -> Peer {
        let stream = TcpStream::connect(self.server.address()).expect("connected");
        stream.set_nodelay(true).expect("set");
        Peer { stream, inbox: Vec::new(), opaque: 0, serialize_type: SerializeType::Json }
    }

    pub fn subscribe(&self, group: &str, expression: (&str, &str), version: i64, codes: &[i32]) {
        let tables = &self.plane.state().tables;
        tables.put_online(group, false);
        tables.put_subscription(group, "T", Subscription::new(expression.0, expression.1, version, codes));
    }

    /// Waits until so many pulls do.
    pub fn wait_parked(&self, expected: usize) {
        until("so many pulls wait", || self.plane.state().parked_pulls.len() == expected);
    }
}

pub struct Peer {
    pub stream: TcpStream,
    inbox: Vec<u8>,
    opaque: i32,
    pub serialize_type: SerializeType,
}

pub type Fields<'a> = Vec<(&'a str, Value<'a>)>;

impl Peer {
    /// Sends a request; its number.
    pub fn send(&mut self, code: i32, fields: &Fields<'_>, body: &[u8]) -> i32 {
        self.opaque += 1;
        self.write(&Header { serialize_type: self.serialize_type, ..Header::request(code, self.opaque, fields) }, body);
        self.opaque
    }

    pub fn write(&mut self, header: &Header<'_>, body: &[u8]) {
        let mut out = Vec::new();
        header.write(body, &mut out);
        self.stream.write_all(&out).expect("sent");
    }

    /// The next frame, if one comes in time.
    pub fn next(&mut self, timeout: Duration) -> Option<OwnedCommand> {
        let until = Instant::now() + timeout;
        loop {
            let limits = Limits::default();
            if let Some((frame, length)) = frame::first(&self.inbox, &limits).expect("sound") {
                let command = OwnedCommand::from(&Command::decode(&frame, &limits).expect("sound"));
                self.inbox.drain(..length);
                return Some(command);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1)))).expect("set");
            let mut more = vec![0; 64 << 10];
            match self.stream.read(&mut more) {
                Ok(0) => panic!("the broker ended the connection"),
                Ok(read) => self.inbox.extend_from_slice(&more[..read]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub fn ask(&mut self, code: i32, fields: &Fields<'_>, body: &[u8]) -> OwnedCommand {
        let opaque = self.send(code, fields, body);
        let answer = self.next(PATIENCE).expect("an answer");
        assert_eq!((answer.opaque, answer.flag & 1, answer.serialize_type), (opaque, 1, self.serialize_type));
        answer
    }

    /// Stores one message of the topic `T`.
    pub fn put(&mut self, queue_id: i64, properties: &str, body: &[u8]) -> OwnedCommand {
        let answer = self.ask(SEND_V2, &short("T", queue_id, properties), body);
        assert_eq!(answer.code, 0, "{:?}", answer.remark);
        answer
    }
}

/// Header fields of a send, by their short names.
pub fn short<'a>(topic: &'a str, queue_id: i64, properties: &'a str) -> Fields<'a> {
    let numbers = [("d", 4), ("e", queue_id), ("f", 0), ("g", 1_700_000_000_000), ("h", 0), ("j", 0)];
    let texts = [("a", "p"), ("b", topic), ("c", "TBW102"), ("i", properties)];
    let numbers = numbers.map(|(name, number)| (name, Value::Number(number)));
    texts.map(|(name, text)| (name, Value::Text(text))).into_iter().chain(numbers).collect()
}

/// The same by their long names.
pub fn long<'a>(topic: &'a str, queue_id: i64, properties: &'a str) -> Fields<'a> {
    let name = |short| match short {
        "a" => "producerGroup",
        "b" => "topic",
        "c" => "defaultTopic",
        "d" => "defaultTopicQueueNums",
        "e" => "queueId",
        "f" => "sysFlag",
        "g" => "bornTimestamp",
        "h" => "flag",
        "i" => "properties",
        _ => "reconsumeTimes",
    };
    short(topic, queue_id, properties).into_iter().map(|(short, value)| (name(short), value)).collect()
}

pub const COMMIT: i64 = 1;
pub const SUSPEND: i64 = 2;
pub const OWN: i64 = 4;

/// Header fields of a pull of the topic `T` by the group `g`.
pub fn pull<'a>(queue_id: i64, offset: i64, sys_flag: i64) -> Fields<'a> {
    let numbers = [
        ("queueId", queue_id),
        ("queueOffset", offset),
        ("maxMsgNums", 32),
        ("sysFlag", sys_flag),
        ("commitOffset", 7),
        ("suspendTimeoutMillis", 15_000),
        ("subVersion", 5),
    ];
    let numbers = numbers.map(|(name, number)| (name, Value::Number(number)));
    let texts = [("consumerGroup", "g"), ("topic", "T"), ("subscription", "*"), ("expressionType", "TAG")];
    texts.map(|(name, text)| (name, Value::Text(text))).into_iter().chain(numbers).collect()
}

/// The fields with another value for one.
pub fn with<'a>(mut fields: Fields<'a>, name: &str, value: Value<'a>) -> Fields<'a> {
    let field = fields.iter_mut().find(|(other, _)| *other == name).expect("a field");
    field.1 = value;
    fields
}

pub fn field<'a>(answer: &'a OwnedCommand, name: &str) -> &'a str {
    answer.fields.get(name).unwrap_or_default()
}

/// Bodies and property strings of the records of an answer.
pub fn records(mut bytes: &[u8]) -> Vec<(Vec<u8>, String)> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let message = Message::decode(bytes).expect("a record");
        let properties = String::from_utf8(message.properties().to_vec()).expect("text");
        records.push((message.body().to_vec(), properties));
        bytes = &bytes[message.record().len()..];
    }
    records
}
