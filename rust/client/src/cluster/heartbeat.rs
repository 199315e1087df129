//! Heartbeats of a producer to its brokers; `mqadmin producerConnection` lists who sends them.
//!
//! Source: `MQClientInstance.sendHeartbeatToAllBrokerWithLock`, `HeartbeatData`.
use super::requests::Cluster;
use crate::error::Result;
use rmqfast_remoting::Ask;
use rmqfast_remoting::code::request;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Java's `heartbeatBrokerInterval`.
const INTERVAL: Duration = Duration::from_secs(30);

/// The heartbeats of a producer to its brokers.
#[derive(Debug)]
pub struct Heartbeats {
    body: Vec<u8>,
    sent: Mutex<HashMap<String, Instant>>,
}

impl Heartbeats {
    /// Of a client, by its id, that is in a producer group.
    pub fn of_producer(client_id: &str, group: &str) -> Self {
        let groups = [serde_json::json!({ "groupName": group })];
        let data = serde_json::json!({ "clientID": client_id, "consumerDataSet": [], "producerDataSet": groups });
        Self { body: data.to_string().into_bytes(), sent: Mutex::default() }
    }

    /// Sends one to a broker, if it is time to.
    ///
    /// # Errors
    /// As [`Cluster::ask`].
    pub fn beat(&self, cluster: &Cluster, address: &str) -> Result<()> {
        if self.is_due(address) {
            let ask = Ask { body: &self.body, ..cluster.usual(request::HEART_BEAT, &[]) };
            cluster.ask(address, ask)?;
        }
        Ok(())
    }

    /// Whether it is time to; from now on it is not. One that fails is not sent again before the next one is due.
    fn is_due(&self, address: &str) -> bool {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = sent.get(address).is_none_or(|at| at.elapsed() >= INTERVAL);
        if is_due {
            sent.insert(address.to_owned(), Instant::now());
        }
        is_due
    }
}
