//! Settings of a broker: options fixed at the start, and settings that may change at run time.
use rmqfast_store::format::host::Host;
use rmqfast_store::store::pull::GetLimits;
use std::time::Duration;

/// Default time for which a pull that arrived before its heartbeat waits for the heartbeat. Clients send both during
/// the same rebalance.
pub const EARLY_PULL_WAIT: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
pub struct BrokerOptions {
    pub broker_name: String,
    pub cluster_name: String,
    /// Address that name servers return to clients. Records contain it as their store host.
    pub address: Host,
    pub region: String,
    pub trace_on: bool,
    pub max_message_size: usize,
    /// Maximum number of pairs of group and topic that have offsets (`maxConsumerOffsetCount`).
    pub max_offsets: usize,
    /// Maximum number of new pairs of group and topic per connection: at once, and per second (`newNamesBurst`,
    /// `newNamesPerSecond`).
    pub new_names: (u32, u32),
    /// Port of the second listener (the VIP channel), which refuses pulls.
    pub vip_port: Option<u16>,
    /// Whether every request goes to the control plane first, for example to check permissions.
    pub hands_over_all: bool,
    /// Whether this broker is a slave (`brokerRole=SLAVE`). A slave refuses messages of producers and gets its
    /// offsets from the master.
    pub is_slave: bool,
    /// Set if the answer to a send waits for a slave (`brokerRole=SYNC_MASTER`).
    pub sync_replication: Option<SyncReplication>,
    /// Maximum time for which a pull waits for the heartbeat that registers its subscription.
    pub early_pull_wait: Duration,
    pub settings: Settings,
}

#[derive(Clone, Copy, Debug)]
pub struct SyncReplication {
    /// Maximum wait for a slave (`slaveTimeout`).
    pub timeout: Duration,
    /// Maximum bytes that a slave may be behind for a send to wait for it (`haSlaveFallbehindMax`).
    pub most_behind: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Limits of messages and bytes in the answer to one pull.
    pub limits: GetLimits,
    /// Whether a pull without messages waits at the broker as long as the client allows (`longPollingEnable`).
    pub long_polling: bool,
    /// Time for which a pull without messages waits if long polling is off (`shortPollingTimeMills`).
    pub short_polling: Duration,
    pub property_filter: bool,
    /// Whether each body is checked against its CRC at its first delivery (`checkCRCOnDelivery`).
    pub checks_bodies: bool,
    /// Whether a slave reports a missing offset to the consumer, as a master does (`offsetCheckInSlave`).
    pub checks_offsets_in_slave: bool,
    /// Whether consumers far behind the log's end shall pull from a slave (`slaveReadEnable`).
    pub slave_read: bool,
    pub rejects_transactions: bool,
    /// Time in milliseconds since 1970 before which all sends are refused (`startAcceptSendRequestTimeStamp`).
    pub accepts_sends_from: i64,
}
