//! A master's HA port: a follower of ours at it, and peers that say what slaves say, or otherwise.
use crate::peers::{FILE, Gate, files, follow, options};
use rmqfast_replication::wire::{HEADER_LEN, Header, NO_REPLICA};
use rmqfast_replication::{Follower, HaOptions, HaService, Peers, Replicas};
use rmqfast_store::file::disk;
use rmqfast_store::store::append::{AppendOptions, Appender, Flush, Messages, OwnedMessage};
use rmqfast_store::store::retain::clock::Clock;
use rmqfast_store::store::retain::options::{RetainOptions, Situation};
use rmqfast_waiting::{PATIENCE, deadline, until};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A store, and a service that gives its log away.
pub struct Master {
    pub service: HaService,
    appender: Arc<Appender>,
    pub replicas: Arc<Replicas>,
    lines: Receiver<String>,
    dir: TempDir,
}

pub fn usual() -> HaOptions {
    HaOptions {
        peers: Peers::Machine,
        tls: None,
        max_frame: 1 << 20,
        // longer than a test waits: what is sent was woken by an append
        heartbeat: Duration::from_secs(600),
        housekeeping: Duration::from_secs(20),
    }
}

impl Master {
    fn new() -> Self {
        Self::with(options(), usual())
    }

    pub fn with(store: AppendOptions, ha: HaOptions) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let appender = Arc::new(Appender::open(dir.path(), store).expect("new"));
        let replicas = Arc::new(Replicas::default());
        let (tell, lines) = channel();
        let tell = Mutex::new(tell);
        // nobody hears it where the test is over
        let tell = Box::new(move |line| drop(tell.lock().expect("no panic").send(line)));
        let any = ([127, 0, 0, 1], 0).into();
        let service = HaService::start(any, appender.clone(), replicas.clone(), ha, tell).expect("a port");
        Self { service, appender, replicas, lines, dir }
    }

    fn fill(&self, count: usize, most: usize) {
        for n in 0..count {
            self.send(1 + n * 37 % most);
        }
    }

    /// Returns where the log ends then.
    pub fn send(&self, size: usize) -> u64 {
        let message = OwnedMessage { topic: "T".into(), body: vec![b'b'; size], ..OwnedMessage::default() };
        self.appender.append_unsynced(&Messages::new(vec![message]), None, false, |_| {}).expect("appended")
    }

    pub fn end(&self) -> u64 {
        self.appender.log_end().expect("open")
    }

    pub fn log(&self) -> Vec<u8> {
        self.copied(self.dir.path())
    }

    /// Reads as many bytes of another store's log as this log has.
    pub fn copied(&self, store: &Path) -> Vec<u8> {
        let mut bytes = files(&store.join("commitlog"));
        bytes.truncate((self.end() - self.appender.live().log_bounds().0) as usize);
        bytes
    }

    fn connect(&self) -> Slave {
        let socket = TcpStream::connect(self.service.address()).expect("connected");
        socket.set_read_timeout(Some(deadline() - Instant::now())).expect("set");
        Slave { socket, position: None }
    }

    fn asking(&self, offset: i64) -> Slave {
        let mut slave = self.connect();
        slave.report(offset);
        slave
    }

    pub fn line(&self) -> String {
        self.lines.recv_timeout(deadline() - Instant::now()).expect("a line")
    }
}

struct Slave {
    socket: TcpStream,
    /// Where the next frame begins.
    position: Option<u64>,
}

impl Slave {
    fn report(&mut self, offset: i64) {
        self.socket.write_all(&offset.to_be_bytes()).expect("sent");
    }

    /// The bytes of the next frame; none of a keep-alive.
    fn frame(&mut self) -> Vec<u8> {
        let mut head = [0; HEADER_LEN];
        self.socket.read_exact(&mut head).expect("a frame");
        let at = u64::from_be_bytes(*head.first_chunk().expect("eight"));
        let header = Header::decode(head, self.position.unwrap_or(at)).expect("the next frame");
        let mut bytes = vec![0; header.size];
        self.socket.read_exact(&mut bytes).expect("its bytes");
        self.position = Some(at + header.size as u64);
        bytes
    }

    /// All up to there.
    fn read_to(&mut self, end: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.position != Some(end) {
            bytes.extend(self.frame());
        }
        bytes
    }

    /// Waits until the other side closes the connection.
    fn ends(mut self) {
        let mut rest = Vec::new();
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
        }
    }
}

#[test]
fn a_follower_copies_the_log_while_it_grows_and_no_send_takes_it_for_a_replica() {
    let master = Master::new();
    master.fill(400, 900);
    let copy = tempfile::tempdir().expect("a directory");
    let appender = Appender::open(copy.path(), AppendOptions { replica_from: Some(0), ..options() }).expect("new");
    let appender = Arc::new(appender);
    let address = master.service.address().to_string();
    let follower = Follower::start(appender.clone(), copy.path(), follow(&address, 0)).expect("started");
    until("the first part is there", || follower.progress().listed_to == master.end());
    for _ in 0..200 {
        let end = master.send(300);
        assert!(!master.replicas.is_near(end, u64::MAX));
    }
    until("all of it is there", || follower.progress().listed_to == master.end());
    follower.stop();
    assert!(master.copied(copy.path()) == master.log());
    assert_eq!(master.appender.live().log_bounds().1, master.end());
    assert!(master.lines.try_recv().is_err(), "who is no replica may leave without a word");
}

#[test]
fn frames_are_consecutive_and_end_with_the_files() {
    for max_frame in [700, 100_000, 1 << 20] {
        let master = Master::with(options(), HaOptions { max_frame, ..usual() });
        master.fill(500, 1500);
        let mut slave = master.asking(0);
        let mut bytes: Vec<u8> = Vec::new();
        while (bytes.len() as u64) < master.end() {
            let frame = slave.frame();
            let start = bytes.len() as u64;
            bytes.extend(&frame);
            assert!(frame.len() <= max_frame);
            assert!(start / FILE == (bytes.len() as u64 - 1) / FILE, "over the end of a file at {start}");
        }
        assert!(bytes == master.log(), "{max_frame}");
        // what comes later is sent at once
        let end = master.send(10);
        assert_eq!(slave.read_to(end).len() as u64, end - bytes.len() as u64);
    }
}

#[test]
fn a_slave_counts_by_what_it_reports_of_what_it_was_sent() {
    let master = Master::new();
    master.fill(10, 300);
    let (end, replicas) = (master.end(), &master.replicas);
    let is_slave = || replicas.is_near(1, 1);
    let mut slave = master.asking(0);
    slave.read_to(end);
    assert!(!is_slave(), "it has reported nothing yet");
    slave.report(end as i64 - 5);
    until("it is a replica", is_slave);
    assert!(!replicas.wait(end, Duration::ZERO));
    slave.report(end as i64);
    assert!(replicas.wait(end, PATIENCE));
    slave.report(NO_REPLICA);
    until("it is none any more", || !is_slave());
    slave.report(end as i64);
    until("it is one again", is_slave);
    let peer = slave.socket.local_addr().expect("bound");
    drop(slave);
    until("it is gone", || !is_slave());
    assert_eq!(master.line(), format!("the connection of the slave {peer} ended: it closed the connection"));
}

#[test]
fn a_first_report_is_where_to_begin_and_counts_for_nothing() {
    let master = Master::new();
    master.fill(10, 300);
    let end = master.end();
    // whoever asks for the end may have nothing of what is before it
    let mut slave = master.asking(end as i64);
    let next = master.send(100);
    assert_eq!(slave.read_to(next).len() as u64, next - end);
    assert!(!master.replicas.is_near(1, u64::MAX));
}

#[test]
fn a_log_without_a_message_is_waited_for_from_either_of_its_first_bytes() {
    for asked in [0, 1] {
        let master = Master::new();
        let mut slave = master.asking(asked);
        slave.position = Some(asked as u64);
        until("it is connected", || master.service.connections() == 1);
        let end = master.send(10);
        assert_eq!(slave.read_to(end).len() as u64, end - asked as u64);
    }
}

#[test]
fn a_report_in_pieces_is_one_and_of_several_the_last_counts() {
    let master = Master::new();
    master.fill(10, 300);
    let end = master.end();
    let mut slave = master.connect();
    slave.socket.set_nodelay(true).expect("set");
    for byte in 7_i64.to_be_bytes() {
        slave.socket.write_all(&[byte]).expect("sent");
    }
    assert_eq!(slave.read_to(end).len() as u64, end - 7);
    let several: Vec<u8> = [9, end as i64, 8].iter().flat_map(|report: &i64| report.to_be_bytes()).collect();
    slave.socket.write_all(&several).expect("sent");
    until("they were heard", || master.replicas.is_near(8, 1));
    assert!(!master.replicas.wait(9, Duration::ZERO));
}

#[test]
fn who_asks_for_what_the_log_does_not_have_is_closed_with_a_line() {
    for asked in [1 << 40, i64::MAX, -1, -2, i64::MIN] {
        let master = Master::new();
        let end = master.send(300);
        master.asking(asked).ends();
        let line = master.line();
        assert!(line.contains(&format!("it asks for {asked}, and the log goes from 0 to {end}: ")), "{line}");
    }
}

#[test]
fn who_reports_what_it_was_not_sent_is_closed_with_a_line() {
    for more in [1, 1 << 40] {
        let master = Master::new();
        let end = master.send(300);
        let mut slave = master.asking(0);
        slave.read_to(end);
        let acked = end as i64 + more;
        slave.report(acked);
        slave.ends();
        let line = master.line();
        assert!(line.contains(&format!("it reports {acked}, and was sent the log up to {end}")), "{line}");
        assert!(!master.replicas.is_near(1, u64::MAX));
    }
}

#[test]
fn a_quiet_log_is_kept_alive() {
    let master = Master::with(options(), HaOptions { heartbeat: Duration::from_millis(5), ..usual() });
    let end = master.send(300);
    let mut slave = master.asking(0);
    slave.read_to(end);
    for _ in 0..5 {
        assert!(slave.frame().is_empty());
    }
}

#[test]
fn who_says_nothing_is_closed_whatever_it_was_sent() {
    let brief = HaOptions { housekeeping: Duration::from_secs(1), ..usual() };
    let master = Master::with(options(), brief.clone());
    let end = master.send(300);
    let mut slave = master.asking(0);
    slave.read_to(end);
    slave.ends();
    assert!(master.line().ends_with("nothing was heard of it for 1000 ms"));
    // bytes of a request that never is whole
    let master = Master::with(options(), brief);
    let mut half = master.connect();
    let mut left = 7;
    until("it is closed", || {
        if left > 0 {
            // it may be closed by then
            let _ = half.socket.write_all(&[0]);
            left -= 1;
        }
        left == 0 && master.service.connections() == 0
    });
    half.ends();
    assert!(master.line().ends_with(" for 1000 ms"));
}

#[test]
fn a_slave_that_takes_nothing_is_closed_and_holds_up_nobody() {
    let brief = HaOptions { housekeeping: Duration::from_secs(2), ..usual() };
    let master = Master::with(AppendOptions { file_size: 16 << 20, ..options() }, brief);
    // more than two sockets hold
    for _ in 0..40 {
        master.send(1 << 20);
    }
    let stalled = master.asking(0);
    let mut reporting = stalled.socket.try_clone().expect("a handle");
    let is_closed = std::thread::spawn(move || {
        // it reports, so that only what it does not take ends it
        until("it is closed", || reporting.write_all(&1_i64.to_be_bytes()).is_err());
    });
    let (mut other, end) = (master.asking(0), master.end());
    while other.position != Some(end) {
        other.frame();
        other.report(NO_REPLICA);
    }
    drop(other);
    let line = master.line();
    assert!(line.ends_with("it took nothing for 2000 ms"), "{line}");
    is_closed.join().expect("no panic");
}

#[test]
fn only_who_may_connects() {
    for (listed, is_in) in [([10, 0, 0, 1], false), ([127, 0, 0, 1], true)] {
        let peers = Peers::of_addresses([IpAddr::from(listed)]);
        let master = Master::with(options(), HaOptions { peers, ..usual() });
        let end = master.send(10);
        if is_in {
            assert_eq!(master.asking(0).read_to(end).len() as u64, end);
        } else {
            master.connect().ends();
            let expected = "was refused the log: it is not among those that may connect (haSlaveAddresses)";
            assert!(master.line().ends_with(expected));
        }
    }
}

#[test]
fn of_a_thousand_connections_some_are_served_and_the_master_goes_on() {
    let master = Master::new();
    let end = master.send(10);
    let mut served: Vec<Slave> = (0..64).map(|_| master.asking(0)).collect();
    for slave in &mut served {
        assert_eq!(slave.read_to(end).len() as u64, end);
    }
    for _ in 64..1000 {
        master.connect().ends();
    }
    assert!(master.line().contains("was refused the log: 64 are connected"));
    let end = master.send(10);
    served.iter_mut().for_each(|slave| drop(slave.read_to(end)));
    served.clear();
    until("there is room again", || master.service.connections() == 0);
    assert_eq!(master.asking(0).read_to(end).len() as u64, end);
}

#[test]
fn what_the_disk_does_not_have_is_not_sent_where_sends_wait_for_the_disk() {
    let heartbeat = Duration::from_millis(5);
    let master = Master::with(AppendOptions { flush: Flush::Sync, ..options() }, HaOptions { heartbeat, ..usual() });
    let first = master.send(100);
    master.appender.wait_flushed(first, None).expect("flushed");
    let mut slave = master.asking(0);
    assert_eq!(slave.read_to(first).len() as u64, first);
    let gate = Arc::new(Gate::default());
    let watch = disk::watch(master.dir.path(), gate.clone());
    let second = master.send(100);
    // frames come, and none has what is not on the disk
    for _ in 0..20 {
        assert!(slave.frame().is_empty());
    }
    gate.is_open.store(true, Ordering::SeqCst);
    master.appender.wait_flushed(second, None).expect("flushed");
    assert_eq!(slave.read_to(second).len() as u64, second - first);
    drop(watch);
}

#[test]
fn what_retention_takes_is_not_sent() {
    let retain = RetainOptions { first_look_ms: i64::MAX, first_run_ms: i64::MAX, ..RetainOptions::default() };
    let store = AppendOptions { file_size: 1 << 20, retain: Some(retain), ..options() };
    let master = Master::with(store, usual());
    // more than two sockets hold
    for _ in 0..60 {
        master.send(900 << 10);
    }
    let mut slow = master.asking(0);
    slow.frame();
    until("most of it is gone", || {
        let full = Situation { clock: Clock::now(), used_percent: Some(89), manual: false };
        master.appender.clean_in(full).expect("a run").min_offset > 50 << 20
    });
    let min = master.appender.live().log_bounds().0;
    slow.ends();
    let line = master.line();
    assert!(line.ends_with("any more: it was too old"), "{line}");
    master.asking(1).ends();
    let mut new = master.asking(0);
    let first = new.frame().len() as u64;
    assert_eq!(new.position.map(|position| position - first), Some(min), "from the first file on");
    new.read_to(master.end());
}

#[test]
fn closing_ends_all_connections_and_gives_the_port_back() {
    let master = Master::new();
    let end = master.send(10);
    let mut slave = master.asking(0);
    slave.read_to(end);
    let silent = master.connect();
    until("both are there", || master.service.connections() == 2);
    let address = master.service.address();
    master.service.close();
    assert_eq!(master.service.connections(), 0);
    slave.ends();
    silent.ends();
    assert!(TcpStream::connect(address).is_err());
    assert!(master.lines.try_recv().is_err());
}
