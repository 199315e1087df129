//! The addresses of name servers, as a text says them.
//!
//! Source: `RemotingUtil.string2SocketAddress`, `NameServerAddressUtils`.
use crate::error::{Error, Result};
use crate::text::{is_digits, quoted, trim};

const HTTP: &str = "http://";
const INSTANCE: &str = "MQ_INST_";

/// The addresses in a text: `host:port`, several separated by `;`; an endpoint `http://MQ_INST_...:port` is one, too.
///
/// # Errors
/// [`Error::Argument`]: one is no `host:port`.
pub fn name_servers(text: &str) -> Result<Vec<String>> {
    let mut addresses: Vec<String> = Vec::new();
    for part in text.split(';').map(trim).filter(|part| !part.is_empty()) {
        // of other addresses that begin so, a server of HTTP answers, which tells where name servers are
        let address = part.strip_prefix(HTTP).filter(|rest| rest.starts_with(INSTANCE)).unwrap_or(part);
        if !is_address(address) {
            let got = quoted(address);
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

/// The namespace that an endpoint names: `http://MQ_INST_1_x.host:80` is of `MQ_INST_1_x`.
///
/// Source: `NameServerAddressUtils.parseInstanceIdFromEndpoint`.
pub fn namespace_of_endpoint(text: &str) -> Option<&str> {
    let (name, host) = trim(text).strip_prefix(HTTP)?.split_once('.')?;
    let mut within = name.strip_prefix(INSTANCE)?.chars();
    let is_word = within.clone().all(|c| c.is_alphanumeric() || c == '_');
    // a `_` with something before and behind it
    let _ = (within.next(), within.next_back());
    let is_instance = is_word && within.as_str().contains('_') && !host.contains('\n');
    is_instance.then_some(name)
}

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
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
