//! Servers and clients with TLS, on real sockets.
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa};
use rmqfast_remoting::{
    Answer, Body, Client, ClientAuth, ClientTls, Command, Connection, Error, Event, Handler, Header, KeyPair, Mailbox,
    Outgoing, Server, ServerOptions, ServerTls, TlsMode, Trust,
};
use rmqfast_waiting::{PATIENCE, until};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A body in two pieces.
#[derive(Debug)]
struct Halves(Vec<u8>);

impl Body for Halves {
    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn piece(&self, number: usize) -> Option<&[u8]> {
        let (first, second) = self.0.split_at(self.0.len() / 2);
        [first, second].get(number).copied()
    }
}

/// Answers with what it was sent.
struct Echo {
    mailbox: Mailbox,
}

impl Handler for Echo {
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing) {
        if request.code == 8 {
            assert!(self.mailbox.request(request, Answer::to(connection, request)));
        }
        let header = Header { opaque: request.opaque, ..Header::response(request.serialize_type) };
        header.write_before(request.body.len(), out.frames());
        out.push_body(Box::new(Halves(request.body.to_vec())));
    }

    fn on_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>) {
        self.mailbox.connection_closed(connection, reason);
    }

    fn on_warning(&self, error: &Error) {
        self.mailbox.warn(error);
    }
}

/// Who signs, and where everything lies.
struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new(folder: &Path) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = rcgen::KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(parameters, key).expect("signed");
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join("ca.pem"), issuer.pem()).expect("written");
        Self { folder: folder.to_owned(), issuer }
    }

    fn trust(&self) -> Trust {
        Trust::File(self.folder.join("ca.pem"))
    }

    fn pair(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> KeyPair {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut parameters = CertificateParams::new(names).expect("names");
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut parameters);
        let key = rcgen::KeyPair::generate().expect("a key");
        let made = parameters.signed_by(&key, &self.issuer).expect("signed");
        let pair = KeyPair { certificate: self.folder.join(format!("{name}.pem")), key: self.folder.join(name) };
        std::fs::write(&pair.certificate, made.pem()).expect("written");
        std::fs::write(&pair.key, key.serialize_pem()).expect("written");
        pair
    }

    fn server(&self, mode: TlsMode) -> ServerTls {
        let key_pair = Some(self.pair("server", |_| ()));
        ServerTls { mode, key_pair, client_auth: ClientAuth::None, trust: Trust::Anybody }
    }

    fn client(&self) -> ClientTls {
        ClientTls { key_pair: None, trust: self.trust(), checks_host: true }
    }
}

fn scratch() -> (tempfile::TempDir, Authority) {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path());
    (folder, authority)
}

fn start(tls: Option<ServerTls>) -> (Server, Arc<Echo>) {
    start_with(ServerOptions { tls, ..ServerOptions::default() })
}

fn start_with(options: ServerOptions) -> (Server, Arc<Echo>) {
    let echo = Arc::new(Echo { mailbox: Mailbox::new(100) });
    (Server::bind("127.0.0.1:0", options, echo.clone()).expect("listening"), echo)
}

fn connect(server: &Server, tls: Option<&ClientTls>) -> Result<Client, Error> {
    Client::connect(&server.address().to_string(), tls, PATIENCE)
}

/// Whether a request is answered, and why not.
fn ask(server: &Server, tls: Option<&ClientTls>) -> Result<(), Error> {
    let mut client = connect(server, tls)?;
    for size in [0, 10, 300_000] {
        let sent = vec![7; size];
        assert_eq!(client.request(7, &[], &sent, PATIENCE)?.body, sent);
    }
    Ok(())
}

/// What the server says of the next connection that ended.
fn reason(echo: &Echo) -> Option<String> {
    match echo.mailbox.take(PATIENCE) {
        Some(Event::Closed(_, reason)) => reason,
        other => panic!("expected the end of a connection, got {other:?}"),
    }
}

fn is_refused(asked: &Result<(), Error>, word: &str) -> bool {
    matches!(asked, Err(Error::Tls { reason, .. }) if reason.contains(word))
}

#[test]
fn the_mode_says_which_connections_are_taken() {
    let (_folder, authority) = scratch();
    let client = authority.client();
    for (mode, takes_plain, takes_tls) in
        [(TlsMode::Disabled, true, false), (TlsMode::Permissive, true, true), (TlsMode::Enforcing, false, true)]
    {
        let (server, echo) = start(Some(authority.server(mode)));
        assert_eq!(ask(&server, None).is_ok(), takes_plain, "{mode:?}");
        assert_eq!(reason(&echo).is_none(), takes_plain, "{mode:?}");
        let asked = ask(&server, Some(&client));
        assert_eq!(asked.is_ok(), takes_tls, "{mode:?} {asked:?}");
        assert_eq!(reason(&echo).is_none(), takes_tls, "{mode:?}");
    }
    let (server, echo) = start(None);
    assert!(ask(&server, None).is_ok());
    assert_eq!(reason(&echo), None);
    assert!(matches!(ask(&server, Some(&client)), Err(Error::Tls { .. })));
    assert!(reason(&echo).expect("a reason").contains("TLS is disabled here"));
}

#[test]
fn a_server_without_a_certificate_makes_one_that_only_those_take_who_take_any() {
    let (_folder, authority) = scratch();
    let (server, _echo) = start(Some(ServerTls { key_pair: None, ..authority.server(TlsMode::Permissive) }));
    let asked = ask(&server, Some(&ClientTls { trust: Trust::Anybody, ..authority.client() }));
    assert!(asked.is_ok(), "{asked:?}");
    let asked = ask(&server, Some(&authority.client()));
    assert!(is_refused(&asked, "UnknownIssuer"), "{asked:?}");
}

#[test]
fn a_server_is_refused_that_is_another_or_of_another_host_or_whose_time_is_over() {
    let (folder, authority) = scratch();
    let stranger = Authority::new(&folder.path().join("stranger"));
    let (server, echo) = start(Some(stranger.server(TlsMode::Enforcing)));
    let asked = ask(&server, Some(&authority.client()));
    assert!(is_refused(&asked, "UnknownIssuer"), "{asked:?}");
    assert!(reason(&echo).expect("a reason").contains("UnknownCA"));

    let elsewhere = authority.pair("elsewhere", |parameters| {
        parameters.subject_alt_names = CertificateParams::new(vec!["elsewhere".into()]).expect("a").subject_alt_names;
    });
    let tls = ServerTls { key_pair: Some(elsewhere), ..authority.server(TlsMode::Enforcing) };
    let (server, _echo) = start(Some(tls));
    let asked = ask(&server, Some(&authority.client()));
    assert!(is_refused(&asked, "not valid for"), "{asked:?}");
    let asked = ask(&server, Some(&ClientTls { checks_host: false, ..authority.client() }));
    assert!(asked.is_ok(), "{asked:?}");
    let asked = ask(&server, Some(&ClientTls { checks_host: false, ..stranger.client() }));
    assert!(is_refused(&asked, "UnknownIssuer"), "{asked:?}");
}

/// A server that shows what it would not start with, to one client.
fn serve_anyway(pair: &KeyPair) -> String {
    let chain = CertificateDer::pem_file_iter(&pair.certificate).expect("a file").map(|c| c.expect("sound")).collect();
    let key = PrivateKeyDer::from_pem_file(&pair.key).expect("a key");
    let builder = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let config = Arc::new(builder.with_single_cert(chain, key).expect("a pair"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("listening");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut connection = rustls::ServerConnection::new(config).expect("a connection");
        // it ends with what the client thinks of it
        let _ = connection.complete_io(&mut stream);
    });
    address
}

#[test]
fn certificates_that_ended_while_the_server_ran_are_refused_by_clients() {
    let (_folder, authority) = scratch();
    let old = authority.pair("old", |parameters| parameters.not_after = rcgen::date_time_ymd(2020, 1, 2));
    let asked = Client::connect(&serve_anyway(&old), Some(&authority.client()), PATIENCE).map(drop);
    assert!(is_refused(&asked, "expired"), "{asked:?}");
    let good = authority.pair("good", |_| ());
    assert!(Client::connect(&serve_anyway(&good), Some(&authority.client()), PATIENCE).is_ok());
}

#[test]
fn clients_show_certificates_where_they_must_and_wrong_ones_are_refused() {
    let (folder, authority) = scratch();
    let stranger = Authority::new(&folder.path().join("stranger"));
    let as_client = |key_pair| ClientTls { key_pair, ..authority.client() };
    let trusted = as_client(Some(authority.pair("client", |_| ())));
    let unknown = as_client(Some(stranger.pair("client", |_| ())));
    let masked = as_client(Some(authority.pair("masked", |parameters| {
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    })));
    let none = as_client(None);
    for (client_auth, trust, taken) in [
        (ClientAuth::None, authority.trust(), [true, true, true, true]),
        (ClientAuth::Optional, authority.trust(), [true, false, false, true]),
        (ClientAuth::Require, authority.trust(), [true, false, false, false]),
        (ClientAuth::Optional, Trust::Anybody, [true, true, true, true]),
        (ClientAuth::Require, Trust::Anybody, [true, true, true, false]),
    ] {
        let tls = ServerTls { client_auth, trust: trust.clone(), ..authority.server(TlsMode::Enforcing) };
        let (server, echo) = start(Some(tls));
        for (client, is_taken) in [&trusted, &unknown, &masked, &none].into_iter().zip(taken) {
            let asked = ask(&server, Some(client));
            assert_eq!(asked.is_ok(), is_taken, "{client_auth:?} {trust:?} {client:?} {asked:?}");
            assert_eq!(reason(&echo).is_none(), is_taken, "{client_auth:?} {trust:?} {client:?}");
        }
    }
}

#[test]
fn files_that_are_of_no_use_are_named() {
    let (folder, authority) = scratch();
    let good = authority.pair("good", |_| ());
    let other = authority.pair("other", |_| ());
    let old = authority.pair("old", |parameters| parameters.not_after = rcgen::date_time_ymd(2020, 1, 2));
    let early = authority.pair("early", |parameters| parameters.not_before = rcgen::date_time_ymd(2999, 1, 2));
    let file = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("written");
        folder.path().join(name)
    };
    let locked = file("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    let text = file("text", "nothing");
    let wrong = file("wrong", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let with = |certificate: &Path, key: &Path| KeyPair { certificate: certificate.into(), key: key.into() };
    let missing = folder.path().join("missing");
    let cases = [
        (with(&good.certificate, &missing), "missing: key: expected a file that can be read, got No such file"),
        (with(&missing, &good.key), "missing: certificate: expected a file that can be read, got No such file"),
        (with(&good.certificate, &other.key), "other: key: expected the key of the certificate, got keys may not be"),
        (with(&good.certificate, &locked), "locked: key: expected a PEM key without a password, got an encrypted key;"),
        (with(&good.certificate, &text), "text: key: expected a PEM key, got "),
        (with(&text, &good.key), "text: certificate: expected PEM certificates, got none"),
        (with(&wrong, &good.key), "wrong: certificate: expected an X.509 certificate, got something else"),
        (old, "valid now, got one that expired at 2020-01-02 00:00:00 UTC"),
        (early, "valid now, got one that is not valid before 2999-01-02 00:00:00 UTC"),
    ];
    for (pair, expected) in cases {
        let tls = ServerTls { key_pair: Some(pair.clone()), ..authority.server(TlsMode::Permissive) };
        let options = ServerOptions { tls: Some(tls), ..ServerOptions::default() };
        let bound = Server::bind("127.0.0.1:0", options, Arc::new(Echo { mailbox: Mailbox::new(1) }));
        let said = bound.expect_err(expected).to_string();
        assert!(said.contains(expected), "{said}");
        let (server, _echo) = start(Some(authority.server(TlsMode::Enforcing)));
        let said = ask(&server, Some(&ClientTls { key_pair: Some(pair), ..authority.client() })).expect_err(expected);
        assert!(said.to_string().contains(expected), "{said}");
        let none = ask(&server, Some(&ClientTls { trust: Trust::File(text.clone()), ..authority.client() }));
        assert!(none.expect_err("refused").to_string().contains("text: trust: expected PEM certificates, got none"));
    }
}

#[test]
fn half_a_handshake_is_cut_off_and_so_is_one_that_drips() {
    let (_folder, authority) = scratch();
    let options = ServerOptions {
        max_handshake_time: Duration::from_millis(300),
        tls: Some(authority.server(TlsMode::Permissive)),
        ..ServerOptions::default()
    };
    let (server, echo) = start_with(options);
    // a record of 512 bytes, a ClientHello of 508
    let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    for drips in [false, true] {
        let mut stream = TcpStream::connect(server.address()).expect("connected");
        stream.write_all(&hello).expect("sent");
        // never the whole record
        for _ in 0..if drips { 400 } else { 0 } {
            if stream.write_all(&[0]).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(reason(&echo).expect("a reason").contains("no handshake within 300 ms"));
    }
    until("none is left", || server.connections() == 0);
}

#[test]
fn a_connection_that_says_nothing_is_cut_off_and_so_is_what_is_no_handshake() {
    let (_folder, authority) = scratch();
    let options = ServerOptions {
        max_idle: Duration::from_millis(300),
        tls: Some(authority.server(TlsMode::Enforcing)),
        ..ServerOptions::default()
    };
    let (server, echo) = start_with(options);
    let mut silent = TcpStream::connect(server.address()).expect("connected");
    silent.set_read_timeout(Some(PATIENCE)).expect("set");
    assert!(matches!(silent.read(&mut [0; 9]), Ok(0)));
    assert_eq!(reason(&echo), None);
    let (server, echo) = start(Some(authority.server(TlsMode::Enforcing)));
    for wrong in [&b"\x16\x03\x01\0\x05abcde"[..], b"\x16\xff\xff\xff\xff\xff\xff", b"\x16GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(server.address()).expect("connected");
        stream.write_all(wrong).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("shut");
        assert!(reason(&echo).expect("a reason").contains("TLS with <"));
    }
    drop(TcpStream::connect(server.address()).expect("connected"));
    assert_eq!(reason(&echo), None);
}

#[test]
fn a_client_waits_for_a_handshake_no_longer_than_it_was_told() {
    let (_folder, authority) = scratch();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("listening");
    let address = silent.local_addr().expect("bound").to_string();
    let connected = Client::connect(&address, Some(&authority.client()), Duration::from_millis(300));
    assert!(matches!(connected, Err(Error::Timeout { .. })), "{connected:?}");
    let (server, _echo) = start(Some(authority.server(TlsMode::Enforcing)));
    let mut client = connect(&server, Some(&authority.client())).expect("connected");
    client.send_oneway(8, &[], b"", PATIENCE).expect("sent");
    server.close();
    assert!(matches!(client.request(7, &[], b"", PATIENCE), Err(Error::Closed { .. })));
}

#[test]
fn changed_certificates_count_for_new_connections_and_old_ones_stay() {
    let (folder, authority) = scratch();
    let stranger = Authority::new(&folder.path().join("stranger"));
    let tls = authority.server(TlsMode::Enforcing);
    let pair = tls.key_pair.clone().expect("files");
    let reload_interval = Duration::from_millis(10);
    let (server, echo) = start_with(ServerOptions { tls: Some(tls), reload_interval, ..ServerOptions::default() });
    let mut before = connect(&server, Some(&authority.client())).expect("connected");
    // at once: half of a file would be told of, too
    let put = |from: &Path, to: &Path| std::fs::rename(from, to).expect("put in its place");

    // the certificate alone does not fit: nothing changes, and somebody is told
    let next = stranger.pair("next", |_| ());
    put(&next.certificate, &pair.certificate);
    match echo.mailbox.take(PATIENCE) {
        Some(Event::Warning(text)) => assert!(text.contains("expected the key of the certificate"), "{text}"),
        other => panic!("expected a warning, got {other:?}"),
    }
    assert!(ask(&server, Some(&authority.client())).is_ok());

    put(&next.key, &pair.key);
    until("the new ones are taken", || ask(&server, Some(&stranger.client())).is_ok());
    assert!(is_refused(&ask(&server, Some(&authority.client())), "UnknownIssuer"));
    assert_eq!(before.request(7, &[], b"still", PATIENCE).expect("answered").body, b"still");
}

#[test]
fn a_server_asks_its_clients_over_tls_too() {
    let (_folder, authority) = scratch();
    let (server, echo) = start(Some(authority.server(TlsMode::Enforcing)));
    let mut client = connect(&server, Some(&authority.client())).expect("connected");
    client.send_oneway(8, &[], b"", PATIENCE).expect("sent");
    let Some(Event::Request(_, answer)) = echo.mailbox.take(PATIENCE) else { panic!("no request") };
    for _ in 0..20 {
        assert!(answer.connection.send_oneway(40, &[], &[1; 100_000]));
    }
    assert_eq!(client.request(7, &[], b"x", PATIENCE).expect("answered").body, b"x");
}

#[test]
fn many_at_once_are_served() {
    let (_folder, authority) = scratch();
    let (server, _echo) = start(Some(authority.server(TlsMode::Permissive)));
    let client = authority.client();
    std::thread::scope(|scope| {
        for number in 0..32 {
            let (server, tls) = (&server, (number % 2 == 0).then_some(&client));
            scope.spawn(move || ask(server, tls).expect("answered"));
        }
    });
}
