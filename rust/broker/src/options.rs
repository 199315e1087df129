//! Settings of a broker: options fixed at the start, and settings that may change at run time.
use rmqfast_store::format::host::Host;
use rmqfast_store::store::get_limits::GetLimits;
use std::time::Duration;

/// Default wait of a pull that arrived before its heartbeat. Clients send both in the same rebalance.
pub const EARLY_PULL_WAIT: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
pub struct BrokerOptions {
    pub broker_name: String,
    pub cluster_name: String,
    /// Address that name servers publish. Records store it as their store host.
    pub address: Host,
    pub region: String,
    pub trace_on: bool,
    pub max_message_size: usize,
    /// Maximum pairs of group and topic with offsets (`maxConsumerOffsetCount`).
    pub max_offsets: usize,
    /// New pairs that a connection may add at once, and per second (`newNamesBurst`, `newNamesPerSecond`).
    pub new_names: (u32, u32),
    /// Port of the second listener (VIP), which takes no pulls.
    pub vip_port: Option<u16>,
    /// Whether every request goes to the control plane first, for example to check permissions.
    pub hands_over_all: bool,
    /// Whether this is a slave (`brokerRole=SLAVE`), which takes no messages and gets its offsets from the master.
    pub is_slave: bool,
    /// Set if sends wait for a slave (`brokerRole=SYNC_MASTER`).
    pub sync_replication: Option<SyncReplication>,
    /// Maximum wait of a pull for the heartbeat that registers its subscription.
    pub early_pull_wait: Duration,
    pub settings: Settings,
}

/// Options of sends that wait for a slave.
#[derive(Clone, Copy, Debug)]
pub struct SyncReplication {
    /// Maximum wait for a slave (`slaveTimeout`).
    pub timeout: Duration,
    /// Sends do not wait for slaves that are this many bytes behind (`haSlaveFallbehindMax`).
    pub most_behind: u64,
}

/// Settings that may change while a broker runs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Limits of the answer to one pull.
    pub limits: GetLimits,
    /// Whether pulls that find nothing are held as long as the client allows (`longPollingEnable`).
    pub long_polling: bool,
    /// Hold of such a pull without long polling (`shortPollingTimeMills`).
    pub short_polling: Duration,
    pub property_filter: bool,
    /// Whether each body is checked against its CRC at its first delivery (`checkCRCOnDelivery`).
    pub checks_bodies: bool,
    /// Whether a slave reports a missing offset as a master does (`offsetCheckInSlave`).
    pub checks_offsets_in_slave: bool,
    /// Whether consumers far behind the log's end are directed to a slave (`slaveReadEnable`).
    pub slave_read: bool,
    pub rejects_transactions: bool,
    /// Time in milliseconds since 1970 before which no message is accepted (`startAcceptSendRequestTimeStamp`).
    pub accepts_sends_from: i64,
}
