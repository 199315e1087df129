//! Asks name servers and brokers, and waits for their answers.
//!
//! Source: `MQClientAPIImpl`, `NettyRemotingClient.getAndCreateNameserverChannel`, `ClientErrorCode`.
use crate::error::{Error, Result};
use crate::puller::{Sign, texts};
use rmqfast_remoting::code::response;
use rmqfast_remoting::{
    Ask, ClientTls, Command, Completions, Connection, Connections, ConnectionsOptions, Handler, Interrupt, Outgoing,
    OwnedCommand, Value,
};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maps a broker's address in a route to the one that is reachable from here.
pub type Translate = dyn Fn(&str) -> Result<String> + Send + Sync;

/// `ClientErrorCode.CONNECT_BROKER_EXCEPTION`.
pub const NO_ANSWER: i32 = 10001;
/// `ClientErrorCode.NO_NAME_SERVER_EXCEPTION`.
const NO_NAME_SERVER: i32 = 10004;

/// How to reach a cluster.
#[derive(Clone)]
pub struct ClusterOptions {
    /// `host:port` of each name server.
    pub name_servers: Vec<String>,
    /// TLS; without, connections are plain.
    pub tls: Option<ClientTls>,
    /// Signs requests.
    pub sign: Option<Arc<Sign>>,
    /// Maps addresses of routes.
    pub translate: Option<Arc<Translate>>,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for an answer.
    pub timeout: Duration,
}

impl fmt::Debug for ClusterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterOptions").field("name_servers", &self.name_servers).finish_non_exhaustive()
    }
}

/// Connections to a cluster, for requests whose answers are waited for.
pub struct Cluster {
    options: ClusterOptions,
    connections: Connections,
    /// The name server that gets the next request: the same one, until it does not answer.
    chosen: AtomicUsize,
    warnings: Mutex<Vec<String>>,
}

impl Cluster {
    /// Nobody is asked yet.
    ///
    /// # Errors
    /// [`Error::Client`]: there is no name server.
    pub fn new(options: ClusterOptions) -> Result<Self> {
        if options.name_servers.is_empty() {
            return Err(Error::Client {
                text: "No name server address, please set it.".into(),
                remark: String::new(),
                code: NO_NAME_SERVER,
                next_step: "give name_server=\"host:9876\", or set NAMESRV_ADDR in the environment",
            });
        }
        let (tls, connect_timeout) = (options.tls.clone(), options.connect_timeout);
        let connections = ConnectionsOptions { tls, connect_timeout, ..ConnectionsOptions::default() };
        let (handler, completions) = (Arc::new(NoHandler), Arc::new(Completions::new(1, 0)));
        // clients spread over the name servers
        let chance = RandomState::new().build_hasher().finish() as usize;
        let chosen = AtomicUsize::new(chance % options.name_servers.len());
        let connections = Connections::new(connections, handler, completions);
        Ok(Self { connections, chosen, options, warnings: Mutex::default() })
    }

    /// How the cluster is reached.
    pub fn options(&self) -> &ClusterOptions {
        &self.options
    }

    /// What to ask for, with the usual time and no body.
    pub fn usual<'a>(&self, code: i32, fields: &'a [(&'a str, Value<'a>)]) -> Ask<'a> {
        Ask { code, fields, body: b"", timeout: self.options.timeout }
    }

    /// Asks a broker.
    ///
    /// # Errors
    /// [`Error::Response`]: it answers with an error. [`Error::Remoting`]: it does not answer.
    pub fn ask(&self, address: &str, ask: Ask<'_>, interrupt: Interrupt<'_>) -> Result<OwnedCommand> {
        let answer = self.answer(address, ask, interrupt)?;
        if answer.code == response::SUCCESS {
            return Ok(answer);
        }
        let (code, remark, address) = (answer.code, answer.remark.unwrap_or_default(), address.to_owned());
        Err(Error::Response { code, remark, address })
    }

    /// As [`ask`](Self::ask), whatever the answer's code is.
    ///
    /// # Errors
    /// [`Error::Remoting`]: there is no answer.
    pub fn answer(&self, address: &str, ask: Ask<'_>, interrupt: Interrupt<'_>) -> Result<OwnedCommand> {
        let signature = match &self.options.sign {
            // a signature covers all other fields and the body, so it comes last
            Some(sign) => sign(ask.code, &texts(ask.fields), ask.body).map_err(Error::Argument)?,
            None => Vec::new(),
        };
        let signature = signature.iter().map(|(name, value)| (name.as_str(), Value::Text(value)));
        let fields: Vec<_> = ask.fields.iter().copied().chain(signature).collect();
        let take = |received: &rmqfast_remoting::Received, body: &[u8]| OwnedCommand {
            body: body.to_vec(),
            ..received.head.clone()
        };
        Ok(self.connections.request(address, Ask { fields: &fields, ..ask }, interrupt, take)?)
    }

    /// Asks one name server after the other until one answers.
    ///
    /// # Errors
    /// [`Error::Response`]: it answers with an error. [`Error::Client`]: none answers; the text has each failure.
    pub fn ask_name_server(&self, ask: Ask<'_>, interrupt: Interrupt<'_>) -> Result<OwnedCommand> {
        let mut failures = Vec::new();
        for _ in &self.options.name_servers {
            let chosen = self.chosen.load(Ordering::Relaxed);
            let address = &self.options.name_servers[chosen];
            match self.ask(address, ask, interrupt) {
                // whoever gave up has no use for another name server, and this one is not to blame
                Err(Error::Remoting(rmqfast_remoting::Error::Interrupted)) => {
                    return Err(rmqfast_remoting::Error::Interrupted.into());
                }
                Err(Error::Remoting(error)) => {
                    failures.push(failure(address, &error));
                    self.choose_after(chosen);
                }
                // as in Java, only one that does not answer makes the client choose another
                answer => return answer,
            }
        }
        Err(Error::Client {
            text: "no name server answers: ".into(),
            remark: failures.join("; "),
            code: NO_ANSWER,
            next_step: "see that one runs there, and that nameServer is its host:port as the driver and executors reach it",
        })
    }

    /// What is worth a warning since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes what is worth a warning.
    pub fn warn(&self, text: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Ends the connections, and whoever waits for an answer.
    pub fn close(&self) {
        self.connections.close();
    }

    /// Chooses the name server behind one that did not answer, unless another thread did.
    fn choose_after(&self, failed: usize) {
        let servers = &self.options.name_servers;
        let next = (failed + 1) % servers.len();
        let is_chosen = self.chosen.compare_exchange(failed, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_chosen && servers.len() > 1 {
            self.warn(format!("name server {} does not answer: {} is asked", servers[failed], servers[next]));
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Brokers ask nothing over a connection that sent no heartbeat.
struct NoHandler;

impl Handler for NoHandler {
    fn handle(&self, _: &Arc<Connection>, _: &Command<'_>, _: &mut Outgoing) {}

    fn closed(&self, _: &Arc<Connection>, _: Option<&rmqfast_remoting::Error>) {}

    fn warned(&self, _: &rmqfast_remoting::Error) {}
}

/// A failure with its address, which the error of a refused connection names already.
fn failure(address: &str, error: &rmqfast_remoting::Error) -> String {
    match error {
        rmqfast_remoting::Error::Connect { .. } => error.to_string(),
        _ => format!("connect to <{address}> failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_remoting::code::request;
    use rmqfast_waiting::HeldPort;

    #[test]
    fn each_name_server_is_asked_once_wherever_the_turn_begins() {
        let nobody: Vec<HeldPort> = (0..3).map(|_| HeldPort::new()).collect();
        let name_servers: Vec<String> = nobody.iter().map(|port| port.address.clone()).collect();
        let (connect_timeout, timeout) = (Duration::from_secs(1), Duration::from_secs(1));
        for first in 0..name_servers.len() {
            let (name_servers, tls, sign, translate) = (name_servers.clone(), None, None, None);
            let options = ClusterOptions { name_servers, tls, sign, translate, connect_timeout, timeout };
            let cluster = Cluster::new(options).expect("there are name servers");
            cluster.chosen.store(first, Ordering::Relaxed);
            let error = cluster
                .ask_name_server(cluster.usual(request::GET_ROUTEINFO_BY_TOPIC, &[]), &mut rmqfast_remoting::never);
            let text = error.expect_err("nobody answers").to_string();
            for address in &cluster.options.name_servers {
                assert_eq!(text.matches(address.as_str()).count(), 1, "{text}");
            }
            assert_eq!(cluster.take_warnings().len(), 3);
        }
    }
}
