//! The three ways to get a task's messages: pulls, the broker's log, or a mirror's copy.
pub mod copy_plan;
pub mod copy_rows;
pub mod log_plan;
pub mod log_rows;
pub mod log_source;
pub mod piece;
pub mod reader;

use crate::error::{Error, Result};
use crate::request::options::Options;
use crate::store::read::local;
use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Via {
    #[default]
    Pull,
    /// Read from the brokers' logs, where this gives the same messages as pulls.
    Log,
    Auto,
    /// Read from a mirror's copies in this directory. The brokers are asked for offsets only.
    Mirror(PathBuf),
}

impl Via {
    /// Parses the options `via` and `mirrorPath`.
    ///
    /// # Errors
    /// The path is not a local directory.
    pub fn of(options: &Options) -> Result<Self> {
        Ok(match options.text("via") {
            Some("log") => Self::Log,
            Some("auto") => Self::Auto,
            Some("mirror") => Self::Mirror(local("mirrorPath", options.text("mirrorPath").unwrap_or_default())?),
            _ => Self::Pull,
        })
    }
}

/// The decision for a broker: `pulled_because` is the reason to pull its messages, or `None` if its log is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerWay {
    pub broker_name: String,
    pub pulled_because: Option<String>,
}

impl BrokerWay {
    /// Formats decisions as the JSON of the option `ways`.
    pub fn to_option(ways: &[Self]) -> String {
        serde_json::Value::from_iter(ways.iter().map(|way| serde_json::json!([way.broker_name, way.pulled_because])))
            .to_string()
    }

    /// Parses the decisions of an earlier plan.
    ///
    /// # Errors
    /// The text is not the JSON of `to_option`.
    pub fn of_option(text: &str) -> Result<Vec<Self>> {
        let ways: Vec<(String, Option<String>)> =
            serde_json::from_str(text).map_err(|error| Error::argument(format!("option ways: {error}")))?;
        Ok(ways.into_iter().map(|(broker_name, pulled_because)| Self { broker_name, pulled_because }).collect())
    }
}

impl fmt::Display for BrokerWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pulled_because {
            None => write!(f, "by the log of {}", self.broker_name),
            Some(reason) => write!(f, "by pulls of {}: {reason}", self.broker_name),
        }
    }
}
