//! The name servers of a client: one is asked, until it does not answer; then the next one.
//!
//! Source: `NettyRemotingClient.getAndCreateNameserverChannel`, `ClientErrorCode`.
use crate::error::{Error, Result};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};

/// `ClientErrorCode.NO_NAME_SERVER_EXCEPTION`.
const NO_NAME_SERVER: i32 = 10004;

/// The addresses of name servers, of which one is chosen.
#[derive(Debug)]
pub struct NameServers {
    addresses: Vec<String>,
    chosen: AtomicUsize,
}

impl NameServers {
    /// Begins anywhere: clients spread over the name servers.
    pub fn new(addresses: Vec<String>) -> Self {
        let chance = RandomState::new().hash_one(0) as usize;
        Self { chosen: AtomicUsize::new(chance % addresses.len().max(1)), addresses }
    }

    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The address that gets the next request.
    pub fn chosen(&self) -> Option<&str> {
        self.addresses.get(self.chosen.load(Ordering::Relaxed)).map(String::as_str)
    }

    /// # Errors
    /// [`Error::Client`]: there is no name server.
    pub fn check(&self) -> Result<()> {
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

    /// Asks one name server after the other until one answers; `warn` hears of those that do not.
    ///
    /// # Errors
    /// The inner one: each failure, as no name server answers. The outer one: another error than that of a connection, or an
    /// interrupt.
    pub fn ask<T>(
        &self,
        mut ask: impl FnMut(&str) -> Result<T>,
        mut warn: impl FnMut(String),
    ) -> Result<Result<T, Vec<String>>> {
        let mut failures = Vec::new();
        for _ in &self.addresses {
            let chosen = self.chosen.load(Ordering::Relaxed);
            let address = &self.addresses[chosen];
            match ask(address) {
                // whoever gave up has no use for another name server, and this one is not to blame
                Err(Error::Remoting(
                    error @ (rmqfast_remoting::Error::Interrupted | rmqfast_remoting::Error::Forked),
                )) => {
                    return Err(error.into());
                }
                Err(Error::Remoting(error)) => {
                    failures.push(failure(address, &error));
                    if let Some(text) = self.choose_after(chosen) {
                        warn(text);
                    }
                }
                // as in Java, only one that does not answer makes the client choose another
                answer => return answer.map(Ok),
            }
        }
        Ok(Err(failures))
    }

    /// Chooses the name server behind one that did not answer, unless another thread did; the text of the warning.
    fn choose_after(&self, failed: usize) -> Option<String> {
        let servers = &self.addresses;
        let next = (failed + 1) % servers.len();
        let is_chosen = self.chosen.compare_exchange(failed, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        (is_chosen && servers.len() > 1)
            .then(|| format!("name server {} does not answer: {} is asked", servers[failed], servers[next]))
    }
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

    fn refuse(address: &str) -> Result<()> {
        let source = std::io::Error::other("refused");
        Err(rmqfast_remoting::Error::Connect { address: address.to_owned(), source }.into())
    }

    #[test]
    fn each_name_server_is_asked_once_wherever_the_turn_begins() {
        let addresses: Vec<String> = ["a:1", "b:2", "c:3"].map(str::to_owned).into();
        for first in 0..addresses.len() {
            let servers = NameServers { addresses: addresses.clone(), chosen: AtomicUsize::new(first) };
            let mut warnings = Vec::new();
            let failures = servers.ask(refuse, |text| warnings.push(text)).expect("no interrupt").expect_err("nobody");
            for address in &addresses {
                assert_eq!(failures.iter().filter(|text| text.contains(&format!("<{address}>"))).count(), 1);
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
    fn without_an_address_it_is_an_error_that_says_what_to_do() {
        let error = NameServers::new(Vec::new()).check().expect_err("none").to_string();
        assert!(error.starts_with("No name server address, please set it.\ngive name_server="), "{error}");
    }
}
