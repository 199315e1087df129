//! Logs, and peers that serve them as masters do, or otherwise.
use rmqfast_replication::Follow;
use rmqfast_store::file::disk::{Call, Watcher};
use rmqfast_store::store::append::{AppendOptions, Appender, Messages, OwnedMessage};
use std::fs;
use std::io;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

pub const FILE: u64 = 64 << 10;

pub fn options() -> AppendOptions {
    AppendOptions {
        file_size: FILE,
        queue_file_size: 2000,
        index_slots: 16,
        index_entries: 400,
        ..AppendOptions::default()
    }
}

/// Follows all of a log.
pub fn follow(address: &str, from: u64) -> Follow {
    Follow {
        address: address.into(),
        tls: None,
        from,
        max_record: 8 << 20,
        cold: None,
        lists: true,
        counts: false,
        topics: Vec::new(),
    }
}

/// The files of a log, one behind the other up to its end.
pub struct Log {
    pub bytes: Vec<u8>,
    _dir: TempDir,
}

impl Log {
    /// Bytes of a large file.
    pub const LARGE: u64 = 16 << 20;

    /// One with so many messages of up to `most` bytes.
    pub fn new(count: usize, most: usize) -> Self {
        Self::of_sizes((0..count).map(|n| 1 + n * 37 % most))
    }

    /// One with bodies of these sizes.
    pub fn of_sizes(sizes: impl Iterator<Item = usize>) -> Self {
        Self::of_bodies(options(), sizes)
    }

    /// One with bodies of these sizes, in files of [`LARGE`](Self::LARGE) bytes.
    pub fn of_large(sizes: &[usize]) -> Self {
        Self::of_bodies(AppendOptions { file_size: Self::LARGE, ..options() }, sizes.iter().copied())
    }

    fn of_bodies(options: AppendOptions, sizes: impl Iterator<Item = usize>) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let appender = Appender::open(dir.path(), options).expect("new");
        for (n, size) in sizes.enumerate() {
            let body = vec![b'a' + (n % 26) as u8; size];
            let message = OwnedMessage {
                topic: format!("T{}", n % 3),
                body,
                keys: Some(format!("k{n}")),
                ..OwnedMessage::default()
            };
            appender.append(&Messages::new(vec![message]), Some(1_700_000_000_000 + n as i64), 0).expect("appended");
        }
        let end = appender.log_end().expect("open");
        appender.close().expect("closed");
        let mut bytes = files(&dir.path().join("commitlog"));
        bytes.truncate(end as usize);
        Self { bytes, _dir: dir }
    }
}

/// All files of a directory, one behind the other.
pub fn files(directory: &Path) -> Vec<u8> {
    let mut paths: Vec<_> = fs::read_dir(directory).expect("listed").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| fs::read(path).expect("read")).collect()
}

pub fn frame(offset: i64, bytes: &[u8]) -> Vec<u8> {
    let mut frame = offset.to_be_bytes().to_vec();
    frame.extend((bytes.len() as i32).to_be_bytes());
    frame.extend(bytes);
    frame
}

/// The frames of a log from `from` on, with keep-alives among them.
pub fn frames(log: &[u8], from: usize, size: usize) -> Vec<u8> {
    let mut out = frame(from as i64, &[]);
    for (n, part) in log[from..].chunks(size).enumerate() {
        out.extend(frame((from + n * size) as i64, part));
        if n % 5 == 0 {
            out.extend(frame((from + n * size + part.len()) as i64, &[]));
        }
    }
    out
}

/// Who answers each connection by what `answer` makes of its request, then tells what else it hears.
pub struct Peer {
    pub address: String,
    pub heard: Receiver<i64>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl Peer {
    pub fn new(answer: impl Fn(i64) -> Vec<u8> + Send + 'static) -> Self {
        Self::with(answer, false)
    }

    /// One that closes each connection behind its answer.
    pub fn closing(answer: impl Fn(i64) -> Vec<u8> + Send + 'static) -> Self {
        Self::with(answer, true)
    }

    fn with(answer: impl Fn(i64) -> Vec<u8> + Send + 'static, closes: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let (tell, heard) = channel();
        let connections = Arc::new(Mutex::new(Vec::new()));
        let open = connections.clone();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(mut socket) = socket else { return };
                open.lock().expect("no panic").push(socket.try_clone().expect("a handle"));
                let mut report = [0; 8];
                if socket.read_exact(&mut report).is_err() {
                    continue;
                }
                let asked = i64::from_be_bytes(report);
                let _ = tell.send(asked);
                // a follower that has seen enough closes
                let _ = socket.write_all(&answer(asked));
                if closes {
                    let _ = socket.shutdown(Shutdown::Write);
                }
                let tell = tell.clone();
                thread::spawn(move || {
                    while socket.read_exact(&mut report).is_ok() {
                        let _ = tell.send(i64::from_be_bytes(report));
                    }
                });
            }
        });
        Self { address, heard, connections }
    }

    /// One that serves a log, in frames of `size` bytes.
    pub fn serving(log: &[u8], size: usize) -> Self {
        let log = log.to_vec();
        Self::new(move |asked| frames(&log, asked as usize, size))
    }

    pub fn heard(&self) -> i64 {
        self.heard.recv_timeout(Duration::from_secs(60)).expect("something")
    }

    pub fn hang_up(&self) {
        self.connections.lock().expect("no panic").drain(..).for_each(|s| drop(s.shutdown(Shutdown::Both)));
    }
}

/// Holds flushes of the log back until it is open.
#[derive(Default)]
pub struct Gate {
    pub is_open: AtomicBool,
}

impl Watcher for Gate {
    fn before(&self, call: Call, _: &Path) -> io::Result<()> {
        while matches!(call, Call::Sync) && !self.is_open.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn after(&self, _: Call, _: &Path) {}
}
