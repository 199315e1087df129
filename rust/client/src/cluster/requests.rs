//! Blocking requests to name servers and brokers.
//!
//! Source: `MQClientAPIImpl`, `ClientErrorCode`.
use super::name_servers::{AskError, NO_ANSWER, NameServers};
use super::route_data::RouteData;
use crate::error::{Error, Result};
use crate::puller::{Sign, texts};
use rmqfast_remoting::code::{request, response};
use rmqfast_remoting::{
    Ask, ClientTls, Command, Completions, Connection, Connections, ConnectionsOptions, Handler, Interrupt, Outgoing,
    OwnedCommand, Value,
};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maps a broker's address in a route to an address that this machine can reach.
pub type Translate = dyn Fn(&str) -> Result<String> + Send + Sync;

/// Called regularly while a request waits for its answer. An error ends the wait, for example after Ctrl-C.
pub type CheckInterrupt = dyn Fn() -> rmqfast_remoting::Result<()> + Send + Sync;

/// Addresses, TLS, accounts and timeouts of a cluster.
#[derive(Clone)]
pub struct ClusterOptions {
    /// `host:port` of each name server.
    pub name_servers: Vec<String>,
    /// `None` for connections without TLS.
    pub tls: Option<ClientTls>,
    pub sign: Option<Arc<Sign>>,
    pub translate: Option<Arc<Translate>>,
    pub connect_timeout: Duration,
    pub timeout: Duration,
    pub interrupt: Arc<CheckInterrupt>,
}

impl fmt::Debug for ClusterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterOptions").field("name_servers", &self.name_servers).finish_non_exhaustive()
    }
}

/// Connections to the name servers and brokers of a cluster.
pub struct Cluster {
    options: ClusterOptions,
    connections: Connections,
    name_servers: NameServers,
    warnings: Mutex<Vec<String>>,
}

impl Cluster {
    /// Creates the client of a cluster; opens no connection yet.
    ///
    /// # Errors
    /// [`Error::Client`] if there is no name server.
    pub fn new(options: ClusterOptions) -> Result<Self> {
        let name_servers = NameServers::new(options.name_servers.clone());
        name_servers.check()?;
        let (tls, connect_timeout) = (options.tls.clone(), options.connect_timeout);
        let connections = ConnectionsOptions { tls, connect_timeout, ..ConnectionsOptions::default() };
        let (handler, completions) = (Arc::new(NoHandler), Arc::new(Completions::new(1, 0)));
        let connections = Connections::new(connections, handler, completions);
        Ok(Self { connections, name_servers, options, warnings: Mutex::default() })
    }

    pub fn options(&self) -> &ClusterOptions {
        &self.options
    }

    pub fn interrupt(&self) -> Interrupt<'_> {
        &*self.options.interrupt
    }

    /// Creates a request without a body, with the timeout and the interrupt of the options.
    pub fn usual<'a>(&'a self, code: i32, fields: &'a [(&'a str, Value<'a>)]) -> Ask<'a> {
        Ask { interrupt: self.interrupt(), ..Ask::new(code, fields, b"", self.options.timeout) }
    }

    /// Sends a request to a broker and returns its answer. Any response code but SUCCESS is an error.
    ///
    /// # Errors
    /// [`Error::Response`] for an error code; [`Error::Remoting`] if there is no answer.
    pub fn ask(&self, address: &str, ask: Ask<'_>) -> Result<OwnedCommand> {
        let answer = self.answer(address, ask)?;
        if answer.code == response::SUCCESS {
            return Ok(answer);
        }
        let (code, remark, address) = (answer.code, answer.remark.unwrap_or_default(), address.to_owned());
        Err(Error::Response { code, remark, address })
    }

    /// Sends a request to a broker and returns its answer, with any response code.
    ///
    /// # Errors
    /// [`Error::Remoting`] if there is no answer.
    pub fn answer(&self, address: &str, ask: Ask<'_>) -> Result<OwnedCommand> {
        let signature = match &self.options.sign {
            // a signature covers all other fields and the body, so it comes last
            Some(sign) => sign(ask.code, &texts(ask.fields), ask.body).map_err(Error::Argument)?,
            None => Vec::new(),
        };
        let signature = signature.iter().map(|(name, value)| (name.as_str(), Value::Text(value)));
        let fields: Vec<_> = ask.fields.iter().copied().chain(signature).collect();
        let take = |received: &rmqfast_remoting::ReceivedFrame, body: &[u8]| OwnedCommand {
            body: body.to_vec(),
            ..received.head.clone()
        };
        Ok(self.connections.request(address, Ask { fields: &fields, ..ask }, take)?)
    }

    /// Asks the name servers in turn until one answers, and returns the answer.
    ///
    /// # Errors
    /// [`Error::Response`] for an error code; [`Error::Client`] if no name server answers, with each failure.
    pub fn ask_name_server(&self, ask: Ask<'_>) -> Result<OwnedCommand> {
        let no_answer = |error| match error {
            // an interrupt or a fork is not the name server's fault, so no other is asked
            Error::Remoting(rmqfast_remoting::Error::Interrupted | rmqfast_remoting::Error::Forked) => {
                AskError::Other(error)
            }
            Error::Remoting(error) => AskError::NoAnswer(error.to_string()),
            error => AskError::Other(error),
        };
        let one = |address: &str| self.ask(address, ask).map_err(no_answer);
        let asked = self.name_servers.ask(one, |text| self.warn(text))?;
        let failures = match asked {
            Ok(answer) => return Ok(answer),
            Err(failures) => failures,
        };
        Err(Error::Client {
            text: "no name server answers: ".into(),
            remark: failures.join("; "),
            code: NO_ANSWER,
            next_step: "see that one runs there, and that nameServer is its host:port as the driver and executors reach it",
        })
    }

    /// Returns the warnings that were added since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn warn(&self, text: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Closes all connections. Requests in flight fail.
    pub fn close(&self) {
        self.connections.close();
    }

    /// Fetches the route of a topic.
    ///
    /// # Errors
    /// [`Error::Response`] if the name server has no route; [`Error::Client`] if no name server answers.
    pub fn route_data(&self, topic: &str, interrupt: Interrupt<'_>) -> Result<RouteData> {
        let fields = [("topic", Value::Text(topic))];
        let answer = self.ask_name_server(Ask { interrupt, ..self.usual(request::GET_ROUTEINFO_BY_TOPIC, &fields) })?;
        RouteData::of_body(&answer.body).map_err(|got| {
            let (what, expected) = ("answer of a name server", "a route".to_owned());
            rmqfast_remoting::Error::Malformed { what, expected, got }.into()
        })
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Ignores requests from brokers, closed connections, and warnings.
struct NoHandler;

impl Handler for NoHandler {
    fn handle(&self, _: &Arc<Connection>, _: &Command<'_>, _: &mut Outgoing) {}

    fn on_closed(&self, _: &Arc<Connection>, _: Option<&rmqfast_remoting::Error>) {}

    fn on_warning(&self, _: &rmqfast_remoting::Error) {}
}
