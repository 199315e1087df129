//! Exposes a broker's data plane: its tables, offsets and counters.
use crate::append::Appender;
use crate::error::{ArgumentError, ForkError, RemotingError, to_python};
use crate::remoting::call::Call;
use crate::remoting::mailbox::Mailbox;
use crate::remoting::tls::PyTlsOptions;
use pyo3::prelude::*;
use rmqfast_broker::ledger::{Place, Row};
use rmqfast_broker::{
    BrokerOptions, EARLY_PULL_WAIT, Group, Settings, SkippedMessage, Subscription, SyncReplication, Topic,
};
use rmqfast_replication::{HaOptions, Peers};
use rmqfast_store::Error;
use rmqfast_store::store::append::Flush;
use rmqfast_store::store::pull::GetLimits;
use rmqfast_store::store::serve::SkippedRange;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// The data plane of a broker. It answers requests that occur per message, without the GIL.
#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct DataPlane {
    pub inner: Arc<rmqfast_broker::DataPlane>,
    process: u32,
}

/// A message that a pull skipped: `topic, queue_id, queue_offset, physical_offset, size, reason`.
type SkippedRow = (String, i32, i64, i64, i32, String);

/// A row of the ledger: `id, kind, group, topic, queue_id, client, filter_type, filter, from, to, first_ms, last_ms`.
#[derive(IntoPyObject)]
struct LedgerRow(u64, u8, String, String, i32, String, Option<String>, Option<String>, i64, i64, i64, i64);

impl From<Row> for LedgerRow {
    fn from(row: Row) -> Self {
        let filter_type = row.filter.as_ref().and_then(|filter| filter.filter_type.as_deref()).map(str::to_owned);
        let filter = row.filter.as_ref().map(|filter| filter.text.to_string());
        Self(
            row.id,
            row.kind as u8,
            row.group.to_string(),
            row.topic.to_string(),
            row.queue_id,
            row.client.to_string(),
            filter_type,
            filter,
            row.from,
            row.to,
            row.first_ms,
            row.last_ms,
        )
    }
}

// statistics that the control plane may count
const COUNTED: [&str; 5] = ["STORE_PUT", "TOPIC_PUT", "BROKER_PUT", "GROUP_GET", "QUEUE_GET"];

#[derive(FromPyObject)]
pub struct PyDataPlaneOptions {
    broker_name: String,
    cluster_name: String,
    address: String,
    region: String,
    trace_on: bool,
    sync_flush: bool,
    sync_flush_timeout: f64,
    max_message_size: usize,
    max_offsets: usize,
    new_names: (u32, u32),
    max_count_in_memory: usize,
    max_bytes_in_memory: i32,
    max_count_in_disk: usize,
    max_bytes_in_disk: i32,
    memory: u64,
    long_polling: bool,
    short_polling: f64,
    property_filter: bool,
    checks_bodies: bool,
    rejects_transactions: bool,
    vip_port: Option<u16>,
    hands_over_all: bool,
    accepts_sends_from: i64,
    slave_read: bool,
    is_slave: bool,
    checks_offsets_in_slave: bool,
    sync_replication: Option<(f64, u64)>,
}

/// Attributes of `TopicConfig` that the data plane uses.
#[derive(FromPyObject)]
struct PyTopicConfig {
    topic_name: String,
    read_queue_nums: i32,
    write_queue_nums: i32,
    perm: i32,
    topic_filter_type: String,
    order: bool,
}

/// Attributes of `SubscriptionGroupConfig` that the data plane uses.
#[derive(FromPyObject)]
struct PyGroupConfig {
    group_name: String,
    consume_enable: bool,
    consume_broadcast_enable: bool,
    broker_id: i64,
    which_broker_when_consume_slowly: i64,
}

/// Attributes of `SubscriptionData` that the data plane uses.
#[derive(FromPyObject)]
struct PySubscriptionData {
    topic: String,
    expression_type: String,
    sub_string: String,
    sub_version: i64,
    code_set: Vec<i32>,
}

impl PyDataPlaneOptions {
    fn flush(&self) -> (Flush, Duration) {
        (if self.sync_flush { Flush::Sync } else { Flush::Async }, seconds(self.sync_flush_timeout))
    }

    fn into_options(self) -> Result<BrokerOptions, Error> {
        let limits = GetLimits {
            count_in_memory: self.max_count_in_memory,
            bytes_in_memory: self.max_bytes_in_memory,
            count_in_disk: self.max_count_in_disk,
            bytes_in_disk: self.max_bytes_in_disk,
            memory: self.memory,
        };
        let settings = Settings {
            limits,
            long_polling: self.long_polling,
            short_polling: seconds(self.short_polling),
            property_filter: self.property_filter,
            checks_bodies: self.checks_bodies,
            rejects_transactions: self.rejects_transactions,
            accepts_sends_from: self.accepts_sends_from,
            slave_read: self.slave_read,
            checks_offsets_in_slave: self.checks_offsets_in_slave,
        };
        Ok(BrokerOptions {
            settings,
            address: crate::message::host("address", &self.address)?,
            broker_name: self.broker_name,
            cluster_name: self.cluster_name,
            region: self.region,
            trace_on: self.trace_on,
            max_message_size: self.max_message_size,
            max_offsets: self.max_offsets,
            new_names: self.new_names,
            vip_port: self.vip_port,
            hands_over_all: self.hands_over_all,
            is_slave: self.is_slave,
            sync_replication: self
                .sync_replication
                .map(|(timeout, most_behind)| SyncReplication { timeout: seconds(timeout), most_behind }),
            early_pull_wait: EARLY_PULL_WAIT,
        })
    }
}

fn parse_addresses(addresses: &[String]) -> PyResult<Vec<IpAddr>> {
    let parse = |text: &String| {
        let wrong = |_| ArgumentError::new_err(format!("haSlaveAddresses: expected addresses, got {text:?}"));
        text.parse().map_err(wrong)
    };
    addresses.iter().map(parse).collect()
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[pymethods]
impl DataPlane {
    /// Creates a data plane, which answers requests from the appender's store. Other requests go to the mailbox, for
    /// the control plane.
    #[staticmethod]
    fn open(appender: &Appender, mailbox: &Mailbox, options: PyDataPlaneOptions) -> PyResult<Self> {
        let (flush, control) = (options.flush(), mailbox.0.mailbox());
        let options = options.into_options().map_err(to_python)?;
        let inner = rmqfast_broker::DataPlane::new(appender.shared(), flush, options, control)?;
        Ok(Self { inner: Arc::new(inner), process: std::process::id() })
    }

    /// Serves the log to slaves at `address`, in the form `ip:port`. If `slaves` is `None`, only processes on this
    /// machine may connect.
    #[pyo3(signature = (address, *, slaves, max_frame, heartbeat, housekeeping, tls))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of a Python function")]
    fn serve_log(
        &self,
        py: Python<'_>,
        address: &str,
        slaves: Option<Vec<String>>,
        max_frame: usize,
        heartbeat: f64,
        housekeeping: f64,
        tls: Option<PyTlsOptions>,
    ) -> PyResult<()> {
        self.check_process()?;
        let failed = |error: std::io::Error| RemotingError::new_err(format!("listening at {address}: {error}"));
        let bound =
            address.to_socket_addrs().map_err(failed)?.next().ok_or_else(|| failed(ErrorKind::NotFound.into()))?;
        // without configured slaves only this machine may read the log
        let peers = slaves.map_or(Ok(Peers::Machine), |slaves| parse_addresses(&slaves).map(Peers::of_addresses))?;
        let (heartbeat, housekeeping) = (seconds(heartbeat), seconds(housekeeping));
        let tls = tls.map(PyTlsOptions::into_server).transpose()?;
        let options = HaOptions { peers, tls, max_frame, heartbeat, housekeeping };
        py.detach(|| self.inner.serve_log(bound, options)).map_err(failed)
    }

    /// Answers a request again, after the control plane has created the topic or group that was missing.
    #[pyo3(signature = (call, target))]
    fn handle_again(&self, py: Python<'_>, call: &Call, target: Option<(String, i32)>) -> PyResult<()> {
        // a fork lacks the threads that write answers
        self.check_process()?;
        let target = target.as_ref().map(|(topic, queue_id)| (topic.as_str(), *queue_id));
        // the call may append and wait for the disk
        py.detach(|| self.inner.handle_again(&call.request, &call.answer, target));
        Ok(())
    }

    /// Answers parked pulls that have waited long enough, or whose queue got messages without a notification.
    fn check_parked_pulls(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process()?;
        // each answered pull reads the log
        py.detach(|| self.inner.check_parked_pulls());
        Ok(())
    }

    #[getter]
    fn parked_pulls(&self) -> usize {
        self.inner.state().parked_pulls.len()
    }

    fn put_topic(&self, config: PyTopicConfig) {
        let topic = Topic {
            read_queues: config.read_queue_nums,
            write_queues: config.write_queue_nums,
            perm: config.perm,
            is_multi_tag: config.topic_filter_type == "MULTI_TAG",
            is_ordered: config.order,
        };
        self.inner.state().tables.put_topic(&config.topic_name, topic);
    }

    fn remove_topic(&self, name: &str) {
        self.inner.state().tables.remove_topic(name);
        self.inner.state().ledger.remove_topic(name);
    }

    fn put_group(&self, config: PyGroupConfig) {
        let group = Group {
            consume_enable: config.consume_enable,
            broadcast_enable: config.consume_broadcast_enable,
            broker_id: config.broker_id,
            slow_broker_id: config.which_broker_when_consume_slowly,
        };
        self.inner.state().tables.put_group(&config.group_name, group);
    }

    fn remove_group(&self, name: &str) {
        self.inner.state().tables.remove_group(name);
    }

    /// Adds a subscription. Returns the error if its expression does not compile, else `None`.
    fn put_subscription(&self, py: Python<'_>, group: &str, subscription: PySubscriptionData) -> Option<String> {
        let PySubscriptionData { topic, expression_type, sub_string, sub_version, code_set } = subscription;
        // released because an expression may have megabytes
        py.detach(|| {
            let subscription = Subscription::new(&expression_type, &sub_string, sub_version, &code_set);
            let problem = subscription.problem().map(str::to_owned);
            self.inner.state().tables.put_subscription(group, &topic, subscription);
            problem
        })
    }

    /// Checks a filter expression. Returns the response code and remark of a refusal, or `None`.
    fn check_filter(&self, py: Python<'_>, expression_type: &str, expression: &str) -> Option<(i32, String)> {
        py.detach(|| self.inner.state().check_filter(expression_type, expression).err())
    }

    fn remove_subscription(&self, group: &str, topic: &str) {
        self.inner.state().tables.remove_subscription(group, topic);
    }

    fn put_consumer_group(&self, group: &str, message_model: Option<&str>) {
        self.inner.state().tables.put_online(group, message_model == Some("BROADCASTING"));
    }

    fn remove_consumer_group(&self, group: &str) {
        self.inner.state().tables.remove_online(group);
    }

    fn commit_offset(&self, group: &str, topic: &str, queue_id: i32, offset: i64) {
        self.inner.state().offsets.commit(group, topic, queue_id, offset);
    }

    /// Returns the committed offset, or -1 as in RocketMQ if there is no offset.
    fn offset(&self, group: &str, topic: &str, queue_id: i32) -> i64 {
        self.inner.state().offsets.get(group, topic, queue_id).unwrap_or(-1)
    }

    /// Returns offsets by `topic@group` and queue id: those of one group, of one topic, or all.
    #[pyo3(signature = (*, group = None, topic = None))]
    fn offsets(&self, py: Python<'_>, group: Option<&str>, topic: Option<&str>) -> HashMap<String, HashMap<i32, i64>> {
        let row = |(group, topic, queues): (String, String, std::collections::BTreeMap<i32, i64>)| {
            (format!("{topic}@{group}"), queues.into_iter().collect())
        };
        // copied without the GIL, since there may be 300,000 offsets
        py.detach(|| self.inner.state().offsets.of(group, topic).into_iter().map(row).collect())
    }

    /// Returns at most `limit` offsets that changed since the last call: `topic@group` with the offsets of its queues
    /// as JSON, or `None` if they were removed.
    fn take_changed_offsets(&self, py: Python<'_>, limit: usize) -> Vec<(String, Option<String>)> {
        // limited, so that neither this call nor the following transaction takes long
        let changed = py.detach(|| self.inner.state().offsets.take_changed(limit));
        changed.into_iter().map(|changed| (changed.key, changed.json)).collect()
    }

    #[pyo3(signature = (group, topic = None))]
    fn remove_offsets(&self, group: &str, topic: Option<&str>) {
        self.inner.state().offsets.remove(group, topic);
    }

    /// Continues the numbers of the ledger's rows.
    fn continue_ledger(&self, last_id: u64) {
        self.inner.state().ledger.continue_behind(last_id);
    }

    /// Remembers the client id that a heartbeat told on a connection.
    fn put_client(&self, connection: u64, client_id: &str) {
        self.inner.state().ledger.put_client(connection, client_id);
    }

    fn remove_client(&self, connection: u64) {
        self.inner.state().ledger.remove_client(connection);
    }

    /// Ends the open rows of pulls of a group, as a member wants something else.
    fn end_ledger_pulls(&self, group: &str) {
        self.inner.state().ledger.end_pulls(group);
    }

    /// Notes that an administrator asked the members of a group to move its offset.
    fn note_reset(&self, group: &str, topic: &str, queue_id: i32, client: &str, start: i64, stop: i64) {
        self.inner.state().ledger.note_reset(Place { group, topic, queue_id }, client, (start, stop));
    }

    /// Returns the rows of the ledger that are new or have grown, and the time of the first row that was dropped.
    fn take_ledger(&self, py: Python<'_>, idle_ms: i64) -> (Vec<LedgerRow>, Option<i64>) {
        let taken = py.detach(|| self.inner.state().ledger.take(idle_ms));
        (taken.rows.into_iter().map(LedgerRow::from).collect(), taken.gap_ms)
    }

    fn set_permission(&self, perm: i32) {
        self.inner.state().tables.set_permission(perm);
    }

    fn set_disk_usage(&self, text: &str) {
        self.inner.state().set_disk_usage(text);
    }

    /// Counts a message that a consumer sent back.
    fn count_sent_back(&self, key: &str) {
        self.inner.state().counters.of("SNDBCK_PUT", key).add(1, 0);
    }

    /// Counts a message that the control plane handled, in the counter called `name`. Ignores a `name` that is no
    /// counter of the control plane.
    fn count(&self, name: &str, key: &str, size: u64) {
        let counters = &self.inner.state().counters;
        // counters need a static name, so the known name is passed
        if let Some(name) = COUNTED.into_iter().find(|known| *known == name) {
            counters.of(name, key).add(1, size);
        }
    }

    /// Records how long the control plane took to store a message, in milliseconds.
    fn note_put(&self, millis: u64) {
        self.inner.state().times.note_put(millis);
    }

    /// Counts a message that the control plane could not store.
    fn count_failed_put(&self) {
        self.inner.state().failed_puts.add(1, 0);
    }

    /// Returns the longest times of a put and a get in milliseconds, and the number of puts in each range of times.
    fn times(&self) -> (u64, u64, Vec<(&'static str, u64)>) {
        let times = &self.inner.state().times;
        let (put, get) = times.longest();
        (put, get, times.ranges())
    }

    /// Changes the settings that may change at runtime.
    fn set_options(&self, options: PyDataPlaneOptions) -> PyResult<()> {
        let options = options.into_options().map_err(to_python)?;
        // names and addresses are fixed at the start
        self.inner.state().set_settings(options.settings);
        Ok(())
    }

    /// Returns the number of log bytes that are not flushed yet.
    #[getter]
    fn unflushed(&self) -> u64 {
        let state = self.inner.state();
        // saturating, since the flushed offset is read later and may have passed the end
        state.live.log_bounds().1.saturating_sub(state.appender.flushed_offset())
    }

    /// Returns the path of the file that another process has changed, with details, because of which the store refuses
    /// writes; `None` if all files are intact.
    #[getter]
    fn harm(&self) -> Option<String> {
        let harm = self.inner.state().appender.harm();
        harm.map(|(path, reason)| format!("{}: {reason}", path.display()))
    }

    /// Returns the warnings about changed files since the last call.
    fn take_harm_lines(&self) -> Vec<String> {
        self.inner.state().appender.take_harm_lines()
    }

    /// Returns how many messages pulls have skipped because they could not be read.
    #[getter]
    fn skipped_messages(&self) -> u64 {
        self.inner.state().skipped_messages.count()
    }

    /// Returns the skipped messages since the last call.
    fn take_skipped_messages(&self) -> Vec<SkippedRow> {
        let row = |message: SkippedMessage| {
            let SkippedRange { queue_offset, unit, messages, fault } = message.skipped;
            // a range of damaged messages is reported as one row
            let reason = if messages == 1 { fault.to_string() } else { format!("{fault}: {messages} in all") };

            (message.topic, message.queue_id, queue_offset, unit.physical_offset, unit.size, reason)
        };
        self.inner.state().skipped_messages.take().into_iter().map(row).collect()
    }

    /// Returns the name, key, calls, messages and bytes of each counter.
    fn counters(&self) -> Vec<(&'static str, String, u64, u64, u64)> {
        self.inner.state().counters.all()
    }

    fn close(&self, py: Python<'_>) {
        if self.process == std::process::id() {
            py.detach(|| self.inner.close());
        }
    }
}

impl DataPlane {
    fn check_process(&self) -> PyResult<()> {
        // `close` does not use this check: a fork may close the object that it inherited, without effect on the parent
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(ForkError::new_err("the broker was started before a fork: start one in this process"))
    }
}
