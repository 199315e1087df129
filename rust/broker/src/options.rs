//! The settings of a broker: what its data plane is started with, and what may change while it runs.
use rmqfast_store::format::host::Host;
use rmqfast_store::store::get_limits::GetLimits;
use std::time::Duration;

/// How long a pull that came before its heartbeat waits, unless the options say otherwise: the heartbeat follows at once, as the
/// client sends it in the same rebalance.
pub const EARLY_PULL_WAIT: Duration = Duration::from_millis(200);

/// What a broker is started with.
#[derive(Clone, Debug)]
pub struct BrokerOptions {
    /// `brokerName`.
    pub broker_name: String,
    /// `brokerClusterName`.
    pub cluster_name: String,
    /// The address that name servers tell, which records name as their store.
    pub address: Host,
    /// `regionId`.
    pub region: String,
    /// `traceOn`.
    pub trace_on: bool,
    /// `maxMessageSize`.
    pub max_message_size: usize,
    /// Groups and topics of which there are offsets, at most (`maxConsumerOffsetCount`).
    pub max_offsets: usize,
    /// How many of them a connection may bring in at once, and how many each second (`newNamesBurst`, `newNamesPerSecond`).
    pub new_names: (u32, u32),
    /// Port of the second listener, which takes no pulls.
    pub vip_port: Option<u16>,
    /// Every request goes to the control plane first, as where rights are to be checked.
    pub hands_over_all: bool,
    /// It is a slave (`brokerRole=SLAVE`): it takes no messages, and offsets are its master's.
    pub is_slave: bool,
    /// That a send waits for a slave (`brokerRole=SYNC_MASTER`), and how.
    pub sync_replication: Option<SyncReplication>,
    /// How long a pull waits for the heartbeat that registers its subscription.
    pub early_pull_wait: Duration,
    /// What may change.
    pub settings: Settings,
}

/// How sends wait for a slave.
#[derive(Clone, Copy, Debug)]
pub struct SyncReplication {
    /// How long (`slaveTimeout`).
    pub timeout: Duration,
    /// A slave that is so many bytes behind is not waited for (`haSlaveFallbehindMax`).
    pub most_behind: u64,
}

/// What may change while a broker runs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What one pull gives.
    pub limits: GetLimits,
    /// `longPollingEnable`: a pull that finds nothing is held as long as the client allows.
    pub long_polling: bool,
    /// `shortPollingTimeMills`: how long it is held otherwise.
    pub short_polling: Duration,
    /// `enablePropertyFilter`.
    pub property_filter: bool,
    /// Each body is compared with its CRC when it is given for the first time (`checkCRCOnDelivery`).
    pub checks_bodies: bool,
    /// On a slave: a pull of an offset that there is not is told so as by a master (`offsetCheckInSlave`).
    pub checks_offsets_in_slave: bool,
    /// Who reads far behind the log's end is told to read from a slave (`slaveReadEnable`).
    pub slave_read: bool,
    /// `rejectTransactionMessage`.
    pub rejects_transactions: bool,
    /// Milliseconds since 1970 before which no message is taken (`startAcceptSendRequestTimeStamp`).
    pub accepts_sends_from: i64,
}
