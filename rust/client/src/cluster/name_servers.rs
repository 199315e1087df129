//! The name servers of a client. Requests go to the chosen name server; if it does not answer, the next name server is
//! chosen.
//!
//! Source: `NettyRemotingClient.getAndCreateNameserverChannel`, `ClientErrorCode`.
use crate::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};

// `ClientErrorCode.CONNECT_BROKER_EXCEPTION`
pub const NO_ANSWER: i32 = 10001;
// `ClientErrorCode.NO_NAME_SERVER_EXCEPTION`
const NO_NAME_SERVER: i32 = 10004;

/// Addresses of name servers, and the index of the name server that is asked first.
#[derive(Debug)]
pub struct NameServers {
    addresses: Vec<String>,
    chosen: AtomicUsize,
}

/// Failure of a request to a name server.
#[derive(Debug)]
pub enum AskError<E> {
    /// The connection failed with this reason. The next name server is asked.
    NoAnswer(String),
    /// An error that asking another name server would not solve.
    Other(E),
}

impl NameServers {
    /// Creates the list of name servers. Shuffles the addresses, so that clients spread over the name servers.
    pub fn new(mut addresses: Vec<String>) -> Self {
        let chance = RandomState::new();
        addresses.sort_by_cached_key(|address| chance.hash_one(address));
        Self { addresses, chosen: AtomicUsize::new(0) }
    }

    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Returns the address for the next request; `None` if no name server is configured.
    pub fn chosen(&self) -> Option<&str> {
        self.addresses.get(self.chosen.load(Ordering::Relaxed)).map(String::as_str)
    }

    /// Checks that a name server is configured.
    ///
    /// # Errors
    /// [`Error::Client`] if there is no name server.
    pub fn check(&self) -> Result<(), Error> {
        if !self.addresses.is_empty() {
            return Ok(());
        }
        Err(Error::Client {
            text: "No name server address, please set it.".into(),
            remark: String::new(),
            code: NO_NAME_SERVER,
            next_step: "give name_server=\"host:9876\", or set NAMESRV_ADDR in the environment",
        })
    }

    /// Asks the name servers in turn until one answers. Returns the answer, or the failures if no name server answers.
    /// `warn` is called with a text when the next name server is chosen.
    ///
    /// # Errors
    /// The outer error is that of [`AskError::Other`]. The inner error lists all failures, if no name server answers.
    pub fn ask<T, E>(
        &self,
        mut ask: impl FnMut(&str) -> Result<T, AskError<E>>,
        mut warn: impl FnMut(String),
    ) -> Result<Result<T, Vec<String>>, E> {
        let mut failures = Vec::new();
        for _ in &self.addresses {
            let chosen = self.chosen.load(Ordering::Relaxed);
            let address = &self.addresses[chosen];
            match ask(address) {
                Ok(answer) => return Ok(Ok(answer)),
                Err(AskError::Other(error)) => return Err(error),
                // as in Java, an error code in an answer does not change the name server
                Err(AskError::NoAnswer(text)) => {
                    failures.push(failure(address, text));
                    if let Some(text) = self.choose_after(chosen) {
                        warn(text);
                    }
                }
            }
        }
        Ok(Err(failures))
    }

    /// Chooses the next name server, unless another thread has already done so. Returns a warning if this thread has
    /// changed the choice, otherwise `None`.
    fn choose_after(&self, failed: usize) -> Option<String> {
        let servers = &self.addresses;
        let next = (failed + 1) % servers.len();
        let is_chosen = self.chosen.compare_exchange(failed, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        (is_chosen && servers.len() > 1)
            .then(|| format!("name server {} does not answer: {} is asked", servers[failed], servers[next]))
    }
}

/// Returns the error of a client that got `failures` from all name servers.
pub fn unreachable(failures: String) -> Error {
    Error::Client {
        text: failures,
        remark: String::new(),
        code: NO_ANSWER,
        next_step: "see that a name server runs there and that name_server is its address; what runs goes on by itself",
    }
}

/// Puts the address before the text of a connection error, unless the text already begins with the address.
fn failure(address: &str, text: String) -> String {
    let is_named = text.starts_with(&format!("connect to <{address}>"));
    if is_named { text } else { format!("connect to <{address}> failed: {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(_: &str) -> Result<(), AskError<()>> {
        Err(AskError::NoAnswer("refused".to_owned()))
    }

    #[test]
    fn clients_spread_over_the_name_servers() {
        let all = ["a:1", "b:2", "c:3"].map(str::to_owned);
        // each address is missing from 200 draws with a chance of (2/3)^200
        let firsts: Vec<_> = (0..200).map(|_| NameServers::new(all.to_vec()).chosen().map(str::to_owned)).collect();
        assert!(all.iter().all(|address| firsts.contains(&Some(address.clone()))));
    }

    #[test]
    fn each_name_server_is_asked_once_wherever_the_turn_begins() {
        let addresses: Vec<String> = ["a:1", "b:2", "c:3"].map(str::to_owned).into();
        for first in 0..addresses.len() {
            let servers = NameServers { addresses: addresses.clone(), chosen: AtomicUsize::new(first) };
            let mut warnings = Vec::new();
            let failures = servers.ask(refuse, |text| warnings.push(text)).expect("no interrupt").expect_err("nobody");
            for address in &addresses {
                let failure = format!("connect to <{address}> failed: refused");
                assert_eq!(failures.iter().filter(|text| **text == failure).count(), 1);
            }
            assert_eq!((warnings.len(), servers.chosen()), (3, Some(addresses[first].as_str())));
        }
    }

    #[test]
    fn the_one_that_answers_stays_chosen() {
        let servers = NameServers { addresses: vec!["a:1".into(), "b:2".into()], chosen: AtomicUsize::new(0) };
        let ask = |address: &str| if address == "a:1" { refuse(address) } else { Ok(()) };
        let mut warnings = Vec::new();
        for _ in 0..3 {
            servers.ask(ask, |text| warnings.push(text)).expect("no interrupt").expect("b answers");
        }
        assert_eq!((servers.chosen(), warnings.len()), (Some("b:2"), 1));
    }

    #[test]
    fn clients_do_not_all_ask_the_same_one() {
        let addresses: Vec<String> = ["a:1", "b:2", "c:3"].map(str::to_owned).into();
        let chosen = |_| NameServers::new(addresses.clone()).chosen().map(str::to_owned);
        let all: std::collections::HashSet<_> = (0..200).filter_map(chosen).collect();
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn without_an_address_it_is_an_error_that_says_what_to_do() {
        let error = NameServers::new(Vec::new()).check().expect_err("none").to_string();
        assert!(error.starts_with("No name server address, please set it.\ngive name_server="), "{error}");
    }
}
