//! Finds the address from which a broker's log may be read, according to the current configuration of the broker and
//! its slaves.
use crate::error::Error;
use rmqfast_client::cluster::TopicCluster;
use rmqfast_client::puller::Queue;
use rmqfast_replication::{Sends, Source};
use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum wait for a slave that is behind its master. Under load the master is always ahead, by the bytes on their
/// way.
const CATCH_UP: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);

/// The reason why a broker's log is not read.
#[derive(Debug)]
pub enum Refusal {
    /// The messages are pulled instead, for this reason.
    Pulled(String),
    /// The read fails with this error.
    Failed(Error),
}

/// A broker's log that may be read.
#[derive(Debug)]
pub struct LogSource {
    pub source: Source,
    /// Address of the slave that serves the log; `None` if the master serves it.
    slave: Option<String>,
}

impl LogSource {
    /// Checks that the log reaches `end`. Waits a little for a slave that is behind.
    ///
    /// # Errors
    /// [`Refusal::Pulled`] if the log ends before `end`, or the slave does not answer.
    pub fn check_reaches(&self, end: u64, cluster: &TopicCluster) -> Result<(), Refusal> {
        let Some(slave) = &self.slave else { return Ok(()) };
        let deadline = Instant::now() + CATCH_UP;
        loop {
            let got = cluster.broker(slave).log_end()?;
            if got >= end.cast_signed() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(pull_because(format!(
                    "its slave at {slave} is behind: expected its log up to {end}, got {got}"
                )));
            }
            thread::sleep(LOOK);
        }
    }
}

/// Returns the logs that have the messages of the broker of `queue` and that may be read.
///
/// If the master's sends never wait for slaves, this is the master's log. Otherwise a reader could count as a slave and
/// delay sends, so the logs of its slaves are returned.
///
/// # Errors
/// [`Refusal::Pulled`] if no log may be read, if the broker has ACLs or TLS, or if it does not answer.
///
/// Source: `HAService.isSlaveOK`; each broker serves its log, whatever its role (`HAService.start`).
pub fn log_sources(cluster: &TopicCluster, queue: &Queue) -> Result<Vec<LogSource>, Refusal> {
    let (address, config) = cluster.broker_config(queue)?;
    let source = source_of(&config, &address)?;
    // no send waits for readers, so reading the master's log is harmless
    if source.sends == Sends::NeverWait {
        return Ok(vec![LogSource { source, slave: None }]);
    }
    let (mut sources, mut last) = (Vec::new(), "no slave of it is known".to_owned());
    for slave in cluster.slaves(queue)? {
        let config = cluster.broker(&slave).config().map_err(Refusal::from);
        match config.and_then(|config| source_of(&config, &slave)) {
            // the slave has become a master
            Ok(source) if source.sends != Sends::NeverWait => last = format!("{slave} is no slave any more"),
            Ok(source) => sources.push(LogSource { source, slave: Some(slave) }),
            // the next slave may answer
            Err(Refusal::Pulled(reason)) => last = format!("of its slave at {slave}: {reason}"),
            Err(failed) => return Err(failed),
        }
    }
    if sources.is_empty() {
        let reason = "it is a SYNC_MASTER: who reads its log may count as a slave, for which sends wait";
        return Err(pull_because(format!("{reason}; {last}")));
    }
    Ok(sources)
}

pub fn pull_because(reason: impl Into<String>) -> Refusal {
    Refusal::Pulled(reason.into())
}

fn source_of(config: &HashMap<String, String>, address: &str) -> Result<Source, Refusal> {
    let source = Source::of_config(config, address).map_err(Refusal::Pulled)?;
    if source.has_acl {
        return Err(pull_because("it has ACLs, and its log has the topics of everybody"));
    }
    if source.has_tls {
        return Err(pull_because("its HA port has TLS (haUseTLS)"));
    }
    Ok(source)
}

impl From<rmqfast_client::Error> for Refusal {
    fn from(error: rmqfast_client::Error) -> Self {
        match error {
            rmqfast_client::Error::Remoting(rmqfast_remoting::Error::Interrupted) => Self::Failed(error.into()),
            error => Self::Pulled(error.to_string()),
        }
    }
}
