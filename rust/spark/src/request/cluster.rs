//! The options of a cluster's address, account and TLS, which reads and the sink share.
use crate::error::{Error, Result};
use crate::request::options::{Kind, Options};
use crate::request::text::{is_digits, quote, trim};
use rmqfast_client::cluster::ClusterOptions;
use rmqfast_client::puller::Sign;
use rmqfast_remoting::{ClientTls, Credentials, KeyPair, Trust};
use std::sync::Arc;
use std::time::Duration;

/// Timeout for connecting and for requests. Same as the defaults in Python's `ClientConfig`.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Parses the address, account, TLS and timeouts of a cluster.
///
/// # Errors
/// [`Error::Argument`]: no name server, an address without a port, one half of an account, or TLS without `tlsTrust`.
pub fn cluster_options(options: &Options) -> Result<ClusterOptions> {
    let sign = credentials(options)?.map(signer);
    let tls = tls(options).map_err(|text| {
        Error::argument(format!("option tls (with tlsTrust, tlsCertificate, tlsKey, tlsVerify): {text}"))
    })?;
    let servers = options.text("nameServer");
    // `NAMESRV_ADDR` is not used here because executors have another environment than the driver
    let servers =
        servers.ok_or_else(|| Error::argument("option nameServer: expected host:port of a name server, got none"))?;
    Ok(ClusterOptions {
        name_servers: name_servers(servers)?,
        tls,
        sign,
        translate: None,
        connect_timeout: TIMEOUT,
        timeout: TIMEOUT,
        interrupt: Arc::new(rmqfast_remoting::never),
    })
}

fn credentials(options: &Options) -> Result<Option<Credentials>> {
    let text = |name| options.text(name).map(str::to_owned);
    match (text("accessKey"), text("secretKey")) {
        (Some(access_key), Some(secret_key)) => {
            Ok(Some(Credentials { access_key, secret_key, security_token: text("securityToken") }))
        }
        (None, None) => Ok(None),
        _ if options.kind() == Kind::Sink => {
            Err(Error::argument("expected the options accessKey and secretKey, got one of them"))
        }
        _ => Err(Error::argument("expected access_key and secret_key, got one of them")),
    }
}

fn signer(credentials: Credentials) -> Arc<Sign> {
    Arc::new(move |_, fields, body| {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Ok(credentials.sign(&fields, body).into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

/// Parses the TLS options. A trust, certificate or key file alone also enables TLS.
fn tls(options: &Options) -> std::result::Result<Option<ClientTls>, String> {
    let [trust, certificate, key] = ["tlsTrust", "tlsCertificate", "tlsKey"].map(|name| options.text(name));
    let names_files = trust.or(certificate).or(key).is_some();
    // an explicit `tls=false` wins over files
    if !options.flag_or("tls", names_files) {
        return Ok(None);
    }
    let key_pair = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(KeyPair { certificate: certificate.into(), key: key.into() }),
        (None, None) => None,
        (certificate, key) => {
            let [certificate, key] = [certificate, key].map(|path| path.unwrap_or("None"));
            return Err(format!("expected a certificate and its key, got {certificate} and {key}"));
        }
    };
    let trust = match (options.flag_or("tlsVerify", true), trust) {
        (false, _) => Trust::Anybody,
        (true, Some(file)) => Trust::File(file.into()),
        // checked in the driver: without authorities every task would fail
        (true, None) => return Err("trust: expected a file of authorities, or verify=False, got None".into()),
    };
    Ok(Some(ClientTls { key_pair, trust, checks_host: options.flag_or("tlsCheckHost", true) }))
}

const HTTP: &str = "http://";
const INSTANCE: &str = "MQ_INST_";

/// Splits the addresses `host:port`, separated by `;`. Also accepts the endpoint `http://MQ_INST_...:port` of a cloud
/// instance.
///
/// # Errors
/// [`Error::Argument`]: a part is not `host:port`.
pub fn name_servers(text: &str) -> Result<Vec<String>> {
    let mut addresses: Vec<String> = Vec::new();
    for part in text.split(';').map(trim).filter(|part| !part.is_empty()) {
        // any other http:// address is an HTTP server that returns name server addresses; it is refused here
        let address = part.strip_prefix(HTTP).filter(|rest| rest.starts_with(INSTANCE)).unwrap_or(part);
        if !is_address(address) {
            let got = quote(address);
            let step = if address.contains("://") { "; write it without what stands before the host" } else { "" };
            let text = format!("name_server: expected host:port, several separated by ';', got {got}{step}");
            return Err(Error::argument(text));
        }
        if !addresses.iter().any(|other| other == address) {
            addresses.push(address.to_owned());
        }
    }
    Ok(addresses)
}

/// Returns the namespace in an endpoint: `MQ_INST_1_x` for `http://MQ_INST_1_x.host:80`. `None` for other addresses.
///
/// Source: `NameServerAddressUtils.parseInstanceIdFromEndpoint`.
pub fn namespace_of_endpoint(text: &str) -> Option<&str> {
    let (name, host) = trim(text).strip_prefix(HTTP)?.split_once('.')?;
    let mut within = name.strip_prefix(INSTANCE)?.chars();
    let is_word = within.clone().all(|c| c.is_alphanumeric() || c == '_');
    // Java's pattern needs a `_` that has a character before and behind it
    let _ = (within.next(), within.next_back());
    let is_instance = is_word && within.as_str().contains('_') && !host.contains('\n');
    is_instance.then_some(name)
}

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    // an IPv6 address stands in brackets, since it contains colons
    let ipv6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match ipv6 {
        Some(host) => !host.is_empty() && host.chars().all(|c| c.is_ascii_hexdigit() || ":.%".contains(c)),
        None => !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || ":/[]@".contains(c)),
    };
    is_host && is_digits(port) && port.len() <= 5 && port.parse::<u32>().is_ok_and(|port| (1..65_536).contains(&port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: [(&str, &str); 2] = [("nameServer", "a:1; b:1"), ("topic", "orders")];

    fn options(kind: Kind, more: &[(&str, &str)]) -> Options {
        let texts = NEEDED.iter().filter(|(name, _)| !more.iter().any(|(other, _)| other == name)).chain(more);
        let pairs: Vec<_> = texts.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Options::of(kind, &pairs).expect("each is a value")
    }

    fn refused(kind: Kind, more: &[(&str, &str)]) -> String {
        cluster_options(&options(kind, more)).expect_err("refused").to_string()
    }

    #[test]
    fn a_cluster_is_reached_plainly_unless_options_say_otherwise() {
        let plain = cluster_options(&options(Kind::TopicBatch, &[])).expect("usual");
        assert_eq!(plain.name_servers, ["a:1", "b:1"]);
        assert!(plain.tls.is_none() && plain.sign.is_none());
        assert_eq!((plain.connect_timeout, plain.timeout), (Duration::from_secs(3), Duration::from_secs(3)));
    }

    #[test]
    fn an_account_signs_and_is_not_shown() {
        let account = [("accessKey", "RocketMQ"), ("secretKey", "12345678"), ("securityToken", "token")];
        let cluster = cluster_options(&options(Kind::Sink, &account)).expect("an account");
        assert!(!format!("{cluster:?}").contains("1234"));
        let fields = [("b", "2"), ("a", "é"), ("\u{10000}", "x"), ("\u{ffff}", "y")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let signed = cluster.sign.expect("signs")(310, &fields, b"body").expect("signed");
        let signature = ("Signature".to_owned(), "ULsstAgyqk5E6uDIwxNhVACIlFw=".to_owned());
        assert_eq!((signed.len(), signed.last()), (3, Some(&signature)));
        assert_eq!(refused(Kind::Sink, &account[..1]), "expected the options accessKey and secretKey, got one of them");
        assert_eq!(refused(Kind::TopicStream, &account[1..]), "expected access_key and secret_key, got one of them");
    }

    #[test]
    fn a_file_is_enough_for_tls_and_false_is_without() {
        let tls = |more: &[(&str, &str)]| cluster_options(&options(Kind::Sink, more)).expect("allowed").tls;
        let of = |trust, key_pair, checks_host| Some(ClientTls { trust, key_pair, checks_host });
        let trusted = || Trust::File("ca.pem".into());
        assert_eq!(tls(&[("tlsTrust", "ca.pem")]), of(trusted(), None, true));
        assert_eq!(tls(&[("tlsTrust", "ca.pem"), ("tls", "false")]), None);
        assert_eq!(tls(&[("tls", "true"), ("tlsVerify", "false")]), of(Trust::Anybody, None, true));
        let pair = KeyPair { certificate: "me.pem".into(), key: "me.key".into() };
        let mine =
            [("tlsTrust", "ca.pem"), ("tlsCertificate", "me.pem"), ("tlsKey", "me.key"), ("tlsCheckHost", "false")];
        assert_eq!(tls(&mine), of(trusted(), Some(pair), false));
        let option = "option tls (with tlsTrust, tlsCertificate, tlsKey, tlsVerify): ";
        let nobody = format!("{option}trust: expected a file of authorities, or verify=False, got None");
        assert_eq!(refused(Kind::Sink, &[("tls", "true")]), nobody);
        let half = format!("{option}expected a certificate and its key, got None and me.key");
        assert_eq!(refused(Kind::Sink, &[("tlsKey", "me.key")]), half);
    }

    #[test]
    fn a_name_server_is_needed() {
        let options = Options::of(Kind::Sink, &[]).expect("none is needed to be read");
        let text = cluster_options(&options).expect_err("nobody to ask").to_string();
        assert_eq!(text, "option nameServer: expected host:port of a name server, got none");
        let wrong = "name_server: expected host:port, several separated by ';', got 'a'";
        assert_eq!(refused(Kind::TopicBatch, &[("nameServer", "a")]), wrong);
    }

    #[test]
    fn addresses_are_read_as_rocketmq_reads_them() {
        assert_eq!(name_servers("a:9876; b:9876;a:9876;").expect("addresses"), ["a:9876", "b:9876"]);
        assert_eq!(name_servers("http://MQ_INST_1_x.host:80").expect("one"), ["MQ_INST_1_x.host:80"]);
        assert_eq!(name_servers("[::1%25]:1; ").expect("one"), ["[::1%25]:1"]);
        assert!(name_servers(" ; ").expect("none").is_empty());
        for wrong in
            ["a", "a:0", "a:65536", "a:b", ":1", "a:1,b:1", "a b:1", "::1:80", "[]:1", "a:000001", "a/b:1", "u@a:1"]
        {
            let text = name_servers(wrong).expect_err("no address").to_string();
            assert_eq!(text, format!("name_server: expected host:port, several separated by ';', got '{wrong}'"));
        }
        for wrong in ["http://a:9876", "https://a:1", "a:1;tcp://b:1", "http://"] {
            let text = name_servers(wrong).expect_err("no address").to_string();
            assert!(text.contains("expected host:port"), "{text}");
            assert!(text.ends_with("write it without what stands before the host"), "{text}");
        }
    }

    #[test]
    fn an_endpoint_names_its_namespace() {
        for (text, namespace) in [
            ("http://MQ_INST_1_x.host:80", Some("MQ_INST_1_x")),
            (" http://MQ_INST_1__.host:80", Some("MQ_INST_1__")),
            ("http://MQ_INST_1_.h:80", None),
            ("http://MQ_INST__a_.h:80", None),
            ("http://MQ_INST_1x.h:80", None),
            ("http://MQ_INST_1_x:80", None),
            ("MQ_INST_1_x.host:80", None),
            ("host:9876", None),
        ] {
            assert_eq!(namespace_of_endpoint(text), namespace, "{text}");
        }
    }
}
