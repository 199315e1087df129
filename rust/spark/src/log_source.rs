//! Whether a broker's log may be read in place of pulls, as it is configured now.
use crate::error::Error;
use rmqfast_client::cluster::TopicCluster;
use rmqfast_client::puller::Queue;
use rmqfast_remoting::Interrupt;
use rmqfast_replication::{Sends, Source};

/// Why a broker's log is not read.
#[derive(Debug)]
pub enum Refusal {
    /// Its messages are pulled, for this reason.
    Pulled(String),
    /// Nothing is read at all.
    Failed(Error),
}

/// Where the broker of `queue` serves its log.
///
/// # Errors
/// [`Refusal::Pulled`] where the log is not for everybody, or sends wait for whoever reads it, or the broker cannot be asked.
pub fn log_source(cluster: &TopicCluster, queue: &Queue, interrupt: Interrupt<'_>) -> Result<Source, Refusal> {
    let (address, config) = cluster.broker_config(queue, interrupt)?;
    let source = Source::of_config(&config, &address).map_err(Refusal::Pulled)?;
    if source.has_acl {
        return Err(pulled("it has ACLs, and its log has the topics of everybody"));
    }
    if source.has_tls {
        return Err(pulled("its HA port has TLS (haUseTLS)"));
    }
    match source.sends {
        Sends::NeverWait => Ok(source),
        Sends::WaitForConnections | Sends::WaitForReports => {
            Err(pulled("it is a SYNC_MASTER: who reads its log may count as a slave, for which sends wait"))
        }
    }
}

/// The reason why a broker's messages are pulled.
pub fn pulled(reason: impl Into<String>) -> Refusal {
    Refusal::Pulled(reason.into())
}

impl From<rmqfast_client::Error> for Refusal {
    fn from(error: rmqfast_client::Error) -> Self {
        match error {
            rmqfast_client::Error::Remoting(rmqfast_remoting::Error::Interrupted) => Self::Failed(error.into()),
            error => Self::Pulled(error.to_string()),
        }
    }
}
