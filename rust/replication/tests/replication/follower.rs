//! A follower beside peers that serve a log as masters do, and beside some that do not.
use crate::peers::{Log, Peer, files, follow, frame, frames, options};
use rmqfast_replication::wire::NO_REPLICA;
use rmqfast_replication::{End, Follower};
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use rmqfast_waiting::until;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

struct Copy {
    dir: TempDir,
    appender: Arc<Appender>,
}

impl Copy {
    fn new() -> Self {
        Self::with(options())
    }

    fn with(options: AppendOptions) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let appender = Appender::open(dir.path(), AppendOptions { replica_from: Some(0), ..options }).expect("new");
        Self { dir, appender: appender.into() }
    }

    fn follow(&self, address: &str, from: u64) -> Follower {
        let follow = follow(address, from);
        Follower::start(self.appender.clone(), self.dir.path(), follow).expect("started")
    }

    fn log(&self) -> Vec<u8> {
        let mut bytes = files(&self.dir.path().join("commitlog"));
        bytes.truncate(self.appender.log_end().expect("open") as usize);
        bytes
    }

    /// Follows until that ends by itself.
    fn ended(&self, peer: &Peer, from: u64) -> Arc<End> {
        let follower = self.follow(&peer.address, from);
        let end = follower.wait(Duration::from_secs(60)).expect("an end");
        follower.stop();
        end
    }
}

fn is_listed(follower: &Follower, log: &Log) {
    until("all is listed", || {
        assert!(follower.wait(Duration::ZERO).is_none(), "{:?}", follower.wait(Duration::ZERO));
        follower.progress().listed_to == log.bytes.len() as u64
    });
}

#[test]
fn a_log_in_frames_of_any_size_is_copied_and_listed() {
    let log = Log::new(800, 900);
    for size in [1, 7, 1000, 32 << 10, 1 << 20] {
        let (peer, copy) = (Peer::serving(&log.bytes, size), Copy::new());
        let follower = copy.follow(&peer.address, 0);
        is_listed(&follower, &log);
        assert_eq!(follower.progress().last_store_ms, 1_700_000_000_799);
        follower.stop();
        assert!(copy.log() == log.bytes, "{size}");
        let messages: i64 = copy.appender.live().queues().iter().map(|queue| queue.bounds().1).sum();
        assert_eq!(messages, 800, "{size}");
        copy.appender.close().expect("closed");
    }
}

#[test]
fn a_follower_asks_for_the_second_byte_and_never_counts_as_a_replica() {
    let log = Log::new(10, 100);
    let (peer, copy) = (Peer::serving(&log.bytes, 100), Copy::new());
    let follower = copy.follow(&peer.address, 0);
    // 0 would be the start of the last file
    assert_eq!(peer.heard(), 1);
    assert_eq!(peer.heard(), NO_REPLICA);
    is_listed(&follower, &log);
    assert_eq!(peer.heard(), NO_REPLICA, "what keeps the connection");
}

#[test]
fn nothing_is_reported_before_something_came() {
    let (peer, copy) = (Peer::new(|_| Vec::new()), Copy::new());
    let follower = copy.follow(&peer.address, 0);
    assert_eq!(peer.heard(), 1);
    // longer than it takes to look whether a report is due
    assert!(peer.heard.recv_timeout(Duration::from_millis(1500)).is_err());
    follower.stop();
    assert!(matches!(*follower.wait(Duration::ZERO).expect("over"), End::Stopped));
}

#[test]
fn a_copy_goes_on_behind_what_it_has_and_compares_the_end_of_that() {
    let log = Log::new(300, 900);
    let copy = Copy::new();
    let half = Peer::serving(&log.bytes[..log.bytes.len() / 2], 500);
    let follower = copy.follow(&half.address, 0);
    until("half of it came", || follower.progress().position > log.bytes.len() as u64 / 2 - 2000);
    half.hang_up();
    assert!(matches!(*follower.wait(Duration::from_secs(60)).expect("over"), End::Closed(_)));
    follower.stop();
    let position = copy.appender.log_end().expect("open");
    let follower = copy.follow(&Peer::serving(&log.bytes, 700).address, position - 5000);
    is_listed(&follower, &log);
    assert_eq!(follower.progress().compared_to, position);
    follower.stop();
    assert!(copy.log() == log.bytes);
    // a master that has nothing new is compared, too
    let follower = copy.follow(&Peer::serving(&log.bytes, 700).address, position - 5000);
    until("all of it was compared", || follower.progress().compared_to == log.bytes.len() as u64);
}

#[test]
fn a_log_that_went_on_with_other_messages_is_told_by_the_first_byte_that_differs() {
    let log = Log::new(300, 900);
    let copy = Copy::new();
    let follower = copy.follow(&Peer::serving(&log.bytes, 5000).address, 0);
    is_listed(&follower, &log);
    follower.stop();
    let at = log.bytes.len() - 3000;
    let mut other = log.bytes.clone();
    other[at] ^= 1;
    let end = copy.ended(&Peer::serving(&other, 900), log.bytes.len() as u64 - 20_000);
    assert!(matches!(*end, End::Diverged { at: found } if found == at as u64), "{end}");
    assert!(copy.log() == log.bytes, "as it was");
}

#[test]
fn peers_that_send_something_else_end_it_and_nothing_of_that_is_written() {
    let log = Log::new(200, 600);
    let good = log.bytes[..20_000].to_vec();
    let whole = {
        let copy = Copy::new();
        let follower = copy.follow(&Peer::serving(&good, 999).address, 0);
        until("the whole records came", || follower.progress().listed_to > 19_000);
        follower.stop();
        copy.appender.log_end().expect("open")
    };
    let head = |offset: i64, size: i32| [&offset.to_be_bytes()[..], &size.to_be_bytes()].concat();
    let is_frame: fn(&End) -> bool = |end| matches!(end, End::Frame { at: 20_000, .. });
    let is_closed: fn(&End) -> bool = |end| matches!(end, End::Closed(_));
    let is_broken: fn(&End) -> bool = |end| matches!(end, End::Broken { .. });
    let cases = [
        ("a hole", frame(20_001, &[1; 10]), is_frame),
        ("once more", frame(19_999, &[1; 10]), is_frame),
        ("a negative offset", frame(-5, &[1; 10]), is_frame),
        ("a negative size", head(20_000, -1), is_frame),
        ("a huge size", head(20_000, i32::MAX), is_frame),
        ("half a header", vec![0; 5], is_closed),
        ("half a frame", [head(20_000, 100), vec![1; 9]].concat(), is_closed),
        ("zeroes", frame(20_000, &[0; 2000]), is_broken),
        ("noise", frame(20_000, &[0xa5; 2000]), is_broken),
    ];
    for (name, harm, is_expected) in cases {
        let bytes = [frames(&good, 1, 999), harm].concat();
        let (peer, copy) = (Peer::new(move |_| bytes.clone()), Copy::new());
        let follower = copy.follow(&peer.address, 0);
        until(name, || follower.progress().position >= whole || follower.wait(Duration::ZERO).is_some());
        if name.starts_with("half") {
            peer.hang_up();
        }
        let end = follower.wait(Duration::from_secs(60)).expect("an end");
        follower.stop();
        assert!(is_expected(&end), "{name}: {end}");
        assert_eq!(copy.appender.log_end().expect("open"), whole, "{name}");
        assert!(copy.log() == good[..whole as usize], "{name}");
        copy.appender.close().expect("closed");
    }
}

#[test]
fn a_record_whose_body_was_changed_is_not_copied() {
    let mut log = Log::new(50, 600);
    let at = log.bytes.len() / 2;
    // in a body: those are runs of one letter
    let body =
        (at..).find(|at| log.bytes[*at..*at + 50].iter().all(|b| *b == log.bytes[*at] && *b > b'a')).expect("one");
    log.bytes[body + 5] ^= 1;
    let (peer, copy) = (Peer::serving(&log.bytes, 400), Copy::new());
    let end = copy.ended(&peer, 0);
    assert!(matches!(&*end, End::Broken { at, reason } if *at < body as u64 && reason.contains("crc")), "{end}");
    let copied = copy.log();
    assert!(copied == log.bytes[..copied.len()] && copied.len() < body);
}

#[test]
fn a_record_larger_than_the_buffer_is_copied_and_one_above_the_limit_is_refused_by_its_size() {
    let options = AppendOptions { file_size: 16 << 20, max_message_size: 8 << 20, ..options() };
    let body = |size: usize| {
        let dir = tempfile::tempdir().expect("a directory");
        let appender = Appender::open(dir.path(), options).expect("new");
        let message = OwnedMessage { topic: "T".into(), body: vec![b'x'; size], ..OwnedMessage::default() };
        appender.append(&Messages::new(vec![message]), None, 0).expect("appended");
        let end = appender.log_end().expect("open") as usize;
        appender.close().expect("closed");
        files(&dir.path().join("commitlog"))[..end].to_vec()
    };
    let (fits, is_too_large) = (body(5 << 20), body((8 << 20) - 10));
    let copy = Copy::with(options);
    let follower = copy.follow(&Peer::serving(&fits, 32 << 10).address, 0);
    until("it came", || follower.progress().listed_to == fits.len() as u64);
    follower.stop();
    let copy = Copy::with(options);
    // its first bytes are enough
    let end = copy.ended(&Peer::serving(&is_too_large[..100_000], 32 << 10), 0);
    assert!(matches!(&*end, End::Broken { at: 0, reason } if reason.contains("at most 8388608 bytes")), "{end}");
}

/// A disk without room for new files below a directory.
struct Full;

impl Watcher for Full {
    fn before(&self, call: Call, _: &Path) -> io::Result<()> {
        if matches!(call, Call::Create | Call::Allocate) { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
    fn after(&self, _: Call, _: &Path) {}
}

#[test]
fn a_full_disk_ends_it_and_with_room_again_the_copy_goes_on() {
    let log = Log::new(400, 600);
    for part in ["commitlog", "consumequeue", "index"] {
        let mut copy = Copy::new();
        let full = disk::watch(&copy.dir.path().join(part), Arc::new(Full));
        let end = copy.ended(&Peer::serving(&log.bytes, 5000), 0);
        assert!(matches!(&*end, End::Store(error) if error.is_disk_full()), "{part}: {end}");
        drop(full);
        // a failed write is looked at when the store is opened again
        let _ = copy.appender.close();
        let options = AppendOptions { replica_from: Some(0), ..options() };
        copy.appender = Appender::open(copy.dir.path(), options).expect("opened").into();
        let position = copy.appender.log_end().expect("open");
        let follower = copy.follow(&Peer::serving(&log.bytes, 5000).address, position);
        is_listed(&follower, &log);
        follower.stop();
        assert!(copy.log() == log.bytes, "{part}");
        let messages: i64 = copy.appender.live().queues().iter().map(|queue| queue.bounds().1).sum();
        assert_eq!(messages, 400, "{part}");
    }
}

#[test]
fn where_nobody_listens_it_ends_and_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let copy = Copy::new();
    let follower = copy.follow(&address, 0);
    let end = follower.wait(Duration::from_secs(60)).expect("an end");
    assert!(matches!(&*end, End::Connect { .. }) && end.to_string().contains(&address), "{end}");
}

#[test]
fn a_place_behind_the_copy_is_refused() {
    let copy = Copy::new();
    let refused =
        Follower::start(copy.appender.clone(), copy.dir.path(), follow("127.0.0.1:1", 5)).expect_err("refused");
    assert!(refused.to_string().contains("at most 0, where the copy ends"), "{refused}");
}
