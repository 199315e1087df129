//! Heartbeats of a producer. They make brokers list the producer in `mqadmin producerConnection`.
//!
//! Source: `MQClientInstance.sendHeartbeatToAllBrokerWithLock`, `HeartbeatData`.
use super::requests::Cluster;
use crate::error::Result;
use rmqfast_remoting::Ask;
use rmqfast_remoting::code::request;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Same as Java's default `heartbeatBrokerInterval`.
const INTERVAL: Duration = Duration::from_secs(30);

/// Heartbeats of a producer, with the time of the last heartbeat per broker address.
#[derive(Debug)]
pub struct Heartbeats {
    body: Vec<u8>,
    sent: Mutex<HashMap<String, Instant>>,
}

impl Heartbeats {
    /// Creates the heartbeat of a client with one producer group.
    pub fn of_producer(client_id: &str, group: &str) -> Self {
        let groups = [serde_json::json!({ "groupName": group })];
        let data = serde_json::json!({ "clientID": client_id, "consumerDataSet": [], "producerDataSet": groups });
        Self { body: data.to_string().into_bytes(), sent: Mutex::default() }
    }

    /// Sends a heartbeat to a broker, unless one was sent less than 30 seconds ago.
    ///
    /// # Errors
    /// Fails like [`Cluster::ask`].
    pub fn beat(&self, cluster: &Cluster, address: &str) -> Result<()> {
        if self.is_due(address) {
            let ask = Ask { body: &self.body, ..cluster.usual(request::HEART_BEAT, &[]) };
            cluster.ask(address, ask)?;
        }
        Ok(())
    }

    /// Returns whether a heartbeat is due. If so, counts it as sent: if sending it fails, the next heartbeat is due
    /// after the usual interval.
    fn is_due(&self, address: &str) -> bool {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = sent.get(address).is_none_or(|at| at.elapsed() >= INTERVAL);
        if is_due {
            sent.insert(address.to_owned(), Instant::now());
        }
        is_due
    }
}
