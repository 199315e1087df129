//! A log that is served with TLS, to followers of ours alone.
use crate::ha_service::{Master, usual};
use crate::peers::{follow, options};
use rmqfast_remoting::{ClientAuth, ClientTls, KeyPair, ServerTls, TlsMode, Trust, make_certificates};
use rmqfast_replication::{End, Follow, Follower, HaOptions};
use rmqfast_store::store::append::{AppendOptions, Appender};
use rmqfast_waiting::{PATIENCE, until};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Certificates of one authority in a directory.
fn certificates(directory: &Path) {
    let names = ["127.0.0.1".to_owned()];
    let made = make_certificates(&names, (2020, 1, 1), (2120, 1, 1)).expect("names");
    for (name, text) in [("ca", made.authority), ("server", made.server), ("key", made.server_key)] {
        std::fs::write(directory.join(name), text).expect("written");
    }
}

fn pair(directory: &Path) -> KeyPair {
    KeyPair { certificate: directory.join("server"), key: directory.join("key") }
}

/// A master that knows its slaves by their certificates, and what such a slave has.
fn secured(directory: &Path, ha: HaOptions) -> (Master, ClientTls) {
    certificates(directory);
    let (key_pair, trust) = (Some(pair(directory)), Trust::File(directory.join("ca")));
    let server = ServerTls {
        mode: TlsMode::Permissive,
        key_pair: key_pair.clone(),
        client_auth: ClientAuth::Require,
        trust: trust.clone(),
    };
    let master = Master::with(options(), HaOptions { tls: Some(server), ..ha });
    (master, ClientTls { key_pair, trust, checks_host: true })
}

struct Copy {
    follower: Follower,
    dir: TempDir,
}

impl Copy {
    fn of(master: &Master, tls: Option<ClientTls>) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let appender = Appender::open(dir.path(), AppendOptions { replica_from: Some(0), ..options() }).expect("new");
        let address = master.service.address().to_string();
        let follow = Follow { tls, counts: true, ..follow(&address, 0) };
        let follower = Follower::start(Arc::new(appender), dir.path(), follow).expect("started");
        Self { follower, dir }
    }

    fn end(&self) -> Arc<End> {
        self.follower.wait(PATIENCE).expect("it ended")
    }
}

#[test]
fn a_slave_with_a_certificate_copies_the_log_and_is_waited_for() {
    let certificates = tempfile::tempdir().expect("a directory");
    let (master, tls) = secured(certificates.path(), usual());
    // records above what TLS seals at a time, and many in a frame
    for size in [10, 60_000, 40_000, 1] {
        master.send(size);
    }
    let copy = Copy::of(&master, Some(tls));
    until("the first part is there", || copy.follower.progress().listed_to == master.end());
    for size in 0..200 {
        let end = master.send(size * 37);
        assert!(master.replicas.wait(end, PATIENCE));
    }
    until("all of it is there", || copy.follower.progress().listed_to == master.end());
    copy.follower.stop();
    assert!(master.copied(copy.dir.path()) == master.log());
    until("its connection is gone", || master.service.connections() == 0);
}

#[test]
fn plain_peers_and_strangers_are_refused_and_told_of() {
    let certificates = [0, 1].map(|_| tempfile::tempdir().expect("a directory"));
    let (master, tls) = secured(certificates[0].path(), usual());
    let refused = |end: &End| matches!(end, End::Closed(_) | End::Tls(_) | End::Frame { .. });
    assert!(refused(&Copy::of(&master, None).end()));
    let line = master.line();
    assert!(line.ends_with("failed: plain bytes came, expected a handshake: TLS is enforced"), "{line}");
    // one of another authority, to which the master is a stranger, too
    self::certificates(certificates[1].path());
    let stranger = ClientTls { trust: Trust::File(certificates[1].path().join("ca")), ..tls.clone() };
    let end = Copy::of(&master, Some(stranger)).end();
    assert!(matches!(&*end, End::Tls(_)) && end.to_string().contains("invalid peer certificate"), "{end}");
    let nameless = ClientTls { key_pair: Some(pair(certificates[1].path())), ..tls };
    let end = Copy::of(&master, Some(nameless)).end();
    assert!(refused(&end), "{end}");
    until("nobody is connected", || master.service.connections() == 0);
}

#[test]
fn a_handshake_that_drips_is_ended_in_time() {
    let certificates = tempfile::tempdir().expect("a directory");
    let brief = HaOptions { housekeeping: Duration::from_millis(200), ..usual() };
    let (master, _) = secured(certificates.path(), brief);
    let mut slow = std::net::TcpStream::connect(master.service.address()).expect("connected");
    // the head of a record of 16 KiB, and then a byte at a time
    slow.write_all(&[0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc]).expect("sent");
    until("it is closed", || slow.write_all(&[0]).is_err());
    let line = master.line();
    assert!(line.contains("TLS with <127.0.0.1:"), "{line}");
    let mut rest = Vec::new();
    assert!(slow.read_to_end(&mut rest).map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true));
}
