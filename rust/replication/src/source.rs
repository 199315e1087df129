//! Finds out from a broker's configuration whether its log can be read, and at which addresses.
//!
//! Source: `HAService.isSlaveOK`, `CommitLog.submitReplicaRequest`, `CommitLog.handleHA` (5.x), `BrokerConfig`, `MessageStoreConfig`.
use std::collections::HashMap;

// Settings of 5.x brokers that have another kind of log or another protocol.
const OTHER_PROTOCOLS: [(&str, &str); 3] = [
    ("enableControllerMode", "controller mode: its replicas speak another protocol"),
    ("enableDLegerCommitLog", "a DLedger commit log: its HA port is not open"),
    ("duplicationEnable", "duplicationEnable: its HA port is not open"),
];
// Settings that enable access control: in 4.9 and 5.x, and since 5.3.
const ACLS: [&str; 3] = ["aclEnable", "authenticationEnabled", "authorizationEnabled"];
// Maximum bytes of a record without its body: topic, properties, and fixed fields.
const AROUND_BODY: u64 = 128 << 10;
// Minimum for the maximum body: a broker may have accepted larger bodies in the past.
const MAX_BODY: u64 = 64 << 20;

/// Tells for which connections the sends of a broker wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    NeverWait,
    /// Sends wait for reported positions. A reader that reports none does not delay sends.
    WaitForReports,
    /// Sends wait for any connection, whatever position it reports.
    WaitForConnections,
}

/// A broker whose log can be read, with the addresses and limits that a reader needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Addresses (`host:port`) of the HA port.
    pub addresses: Vec<String>,
    pub file_size: u64,
    pub max_record: u64,
    pub sends: Sends,
    /// Whether the broker has access control. Its HA port does not apply access control.
    pub has_acl: bool,
    /// Whether the HA port uses TLS. Only rmqfast's brokers support TLS there.
    pub has_tls: bool,
}

impl Source {
    /// Returns the source for the broker at `address`, from its configuration.
    pub fn of_config(config: &HashMap<String, String>, address: &str) -> Result<Self, String> {
        let text = |name: &str| config.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
        let is_true = |name: &str| text(name).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        if let Some((_, reason)) = OTHER_PROTOCOLS.iter().find(|(name, _)| is_true(name)) {
            return Err((*reason).to_owned());
        }
        let number = |name: &str| {
            // these options are 32-bit numbers in Java
            let number = text(name).and_then(|text| text.parse::<i32>().ok()).filter(|number| *number > 0);
            let number = number.map(|number| u64::from(number.unsigned_abs()));
            number.ok_or_else(|| format!("{name}: expected a number, got {}", text(name).unwrap_or("none")))
        };
        let port = number("haListenPort")?;
        let own = address.rsplit_once(':').map(|(host, _)| host);
        // the port is open at all addresses of the broker; brokerIP2 comes second, as other hosts may have the same
        // internal address
        let mut addresses: Vec<String> =
            [own, text("brokerIP2")].into_iter().flatten().map(|host| format!("{host}:{port}")).collect();
        addresses.dedup();
        let is_sync = text("brokerRole") == Some("SYNC_MASTER");
        // only 5.x has `inSyncReplicas`, and waits for reports instead of connections
        let sends = match (is_sync, config.contains_key("inSyncReplicas")) {
            (false, _) => Sends::NeverWait,
            (true, true) => Sends::WaitForReports,
            (true, false) => Sends::WaitForConnections,
        };
        let max_body = number("maxMessageSize").unwrap_or(MAX_BODY).max(MAX_BODY);
        Ok(Self {
            addresses,
            file_size: number("mappedFileSizeCommitLog")?,
            max_record: max_body.saturating_add(AROUND_BODY),
            sends,
            has_acl: ACLS.iter().any(|name| is_true(name)),
            has_tls: is_true("haUseTLS"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(more: &[(&str, &str)]) -> Result<Source, String> {
        let usual = [
            ("brokerIP2", "10.0.0.2"),
            ("haListenPort", "10912"),
            ("mappedFileSizeCommitLog", "1073741824"),
            ("brokerRole", "ASYNC_MASTER"),
        ];
        let pairs = usual.iter().chain(more).map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Source::of_config(&pairs.collect(), "broker.example:10911")
    }

    #[test]
    fn a_log_is_served_at_the_ha_port_of_both_addresses() {
        let expected = Source {
            addresses: vec!["broker.example:10912".to_owned(), "10.0.0.2:10912".to_owned()],
            file_size: 1 << 30,
            max_record: (64 << 20) + AROUND_BODY,
            sends: Sends::NeverWait,
            has_acl: false,
            has_tls: false,
        };
        assert_eq!(source(&[]), Ok(expected));
        let one = source(&[("brokerIP2", "broker.example"), ("maxMessageSize", "134217728")]).expect("a source");
        assert_eq!(
            (one.addresses, one.max_record),
            (vec!["broker.example:10912".to_owned()], (128 << 20) + AROUND_BODY)
        );
    }

    #[test]
    fn sends_to_a_sync_master_of_4_wait_for_connections_and_those_of_5_for_reports() {
        let sends = |more: &[(&str, &str)]| source(more).expect("a source").sends;
        assert_eq!(sends(&[("brokerRole", "SYNC_MASTER")]), Sends::WaitForConnections);
        assert_eq!(sends(&[("brokerRole", "SYNC_MASTER"), ("inSyncReplicas", "1")]), Sends::WaitForReports);
        assert_eq!(sends(&[("brokerRole", "SLAVE")]), Sends::NeverWait);
    }

    #[test]
    fn a_log_that_is_elsewhere_or_speaks_another_protocol_is_none() {
        for (name, reason) in OTHER_PROTOCOLS {
            assert_eq!(source(&[(name, "true")]).expect_err("another protocol"), reason);
            assert!(source(&[(name, "false")]).is_ok());
        }
        assert!(source(&[("aclEnable", "True")]).expect("its log can be read").has_acl);
        assert!(source(&[("haUseTLS", "true")]).expect("its log can be read").has_tls);
        let text = source(&[("haListenPort", "")]).expect_err("no port");
        assert_eq!(text, "haListenPort: expected a number, got none");
    }
}
