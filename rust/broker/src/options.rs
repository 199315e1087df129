//! The settings of a broker: what its data plane is started with, and what may change while it runs.
use rmqfast_store::format::host::Host;
use rmqfast_store::store::get_limits::GetLimits;
use std::time::Duration;

/// Default wait of a pull that came before its heartbeat, which the client sends in the same rebalance.
pub const EARLY_PULL_WAIT: Duration = Duration::from_millis(200);

/// Options of a broker, fixed at the start.
#[derive(Clone, Debug)]
pub struct BrokerOptions {
    pub broker_name: String,
    pub cluster_name: String,
    /// The address that name servers tell, which records name as their store.
    pub address: Host,
    pub region: String,
    pub trace_on: bool,
    pub max_message_size: usize,
    /// Groups and topics of which there are offsets, at most (`maxConsumerOffsetCount`).
    pub max_offsets: usize,
    /// New pairs that a connection may add at once, and each second (`newNamesBurst`, `newNamesPerSecond`).
    pub new_names: (u32, u32),
    /// Port of the second listener, which takes no pulls.
    pub vip_port: Option<u16>,
    /// Every request goes to the control plane first, as where rights are to be checked.
    pub hands_over_all: bool,
    /// It is a slave (`brokerRole=SLAVE`): it takes no messages, and offsets are its master's.
    pub is_slave: bool,
    /// Set where sends wait for a slave (`brokerRole=SYNC_MASTER`).
    pub sync_replication: Option<SyncReplication>,
    /// Wait of a pull for the heartbeat that registers its subscription.
    pub early_pull_wait: Duration,
    pub settings: Settings,
}

/// Options of sends that wait for a slave.
#[derive(Clone, Copy, Debug)]
pub struct SyncReplication {
    /// The longest wait (`slaveTimeout`).
    pub timeout: Duration,
    /// A slave that is so many bytes behind is not waited for (`haSlaveFallbehindMax`).
    pub most_behind: u64,
}

/// Settings that may change while a broker runs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Limits of the answer to one pull.
    pub limits: GetLimits,
    /// `longPollingEnable`: a pull that finds nothing is held as long as the client allows.
    pub long_polling: bool,
    /// `shortPollingTimeMills`: how long it is held otherwise.
    pub short_polling: Duration,
    pub property_filter: bool,
    /// Each body is compared with its CRC when it is given for the first time (`checkCRCOnDelivery`).
    pub checks_bodies: bool,
    /// On a slave: a pull of an offset that there is not is told so as by a master (`offsetCheckInSlave`).
    pub checks_offsets_in_slave: bool,
    /// Consumers far behind the log's end are sent to a slave (`slaveReadEnable`).
    pub slave_read: bool,
    pub rejects_transactions: bool,
    /// Milliseconds since 1970 before which no message is taken (`startAcceptSendRequestTimeStamp`).
    pub accepts_sends_from: i64,
}
