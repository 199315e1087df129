//! Filters of groups for the messages of a topic: by tags or by SQL92.
//!
//! Source: `SubscriptionData`, `ConsumerFilterData`, `ExpressionMessageFilter`.
use rmqfast_store::filter::TagExpression;
use rmqfast_store::filter::sql92::{Dialect, Sql92};
use rmqfast_store::format::message::Message;
use rmqfast_store::format::properties;
use rmqfast_store::store::serve::{PullFilter, TagCodes};

const SQL92: &str = "SQL92";

/// Maximum cost of a filter per message on a shared thread, which is about 50 µs. More expensive filters run on a
/// separate thread.
const HEAVY: usize = 512;

/// Maximum number of characters to keep of a filter's type or of a compile error.
const MAX_TEXT: usize = 1000;

#[derive(Debug)]
pub struct Subscription {
    /// Version of the subscription, as sent by the client. It is a time in milliseconds, and a later time is newer.
    pub version: i64,
    /// Type of the filter, which is `SQL92` or an unknown name. `None` for tags.
    pub filter_type: Option<Box<str>>,
    filter: Filter,
}

#[derive(Debug)]
enum Filter {
    All,
    Codes(TagCodes),
    Sql(Box<Sql92>),
    /// The expression does not compile; holds the reason. A pull that carries an invalid expression gets all
    /// messages.
    Invalid(Box<str>),
}

impl Subscription {
    /// Creates the subscription that a heartbeat contains, from the hash codes of its tags or an SQL92 expression.
    pub fn new(expression_type: &str, sub_string: &str, version: i64, codes: &[i32]) -> Self {
        if !is_tag_type(expression_type) {
            return Self::compile(expression_type, sub_string, version);
        }
        let filter = match sub_string {
            "*" => Filter::All,
            _ => Filter::Codes(TagCodes::new(codes.iter().copied())),
        };
        Self { version, filter_type: None, filter }
    }

    pub fn compile(filter_type: &str, expression: &str, version: i64) -> Self {
        let filter = match filter_type {
            SQL92 => compile_sql(expression),
            _ => Filter::Invalid(clip(&format!("no filter is called {filter_type}"))),
        };
        Self { version, filter_type: Some(clip(filter_type)), filter }
    }

    pub fn all(version: i64) -> Self {
        Self { version, filter_type: None, filter: Filter::All }
    }

    /// Parses the subscription in a pull request. Returns `None` for invalid tags.
    pub fn parse(expression_type: Option<&str>, text: &str, version: i64) -> Option<Self> {
        if let Some(filter_type) = expression_type.filter(|name| !is_tag_type(name)) {
            return Some(Self::compile(filter_type, text, version));
        }
        let filter = match TagExpression::parse(text).ok()? {
            tags if tags.is_all() => Filter::All,
            // hashes only, as in RocketMQ: the consumer compares the tags themselves
            tags => Filter::Codes(TagCodes::new(tags.codes().iter().copied())),
        };
        Some(Self { version, filter_type: None, filter })
    }

    /// Returns the compile error of the expression, if any.
    pub fn problem(&self) -> Option<&str> {
        match &self.filter {
            Filter::Invalid(problem) => Some(problem),
            _ => None,
        }
    }

    /// Returns whether pulls with this filter are answered on the thread for expensive filters.
    pub fn is_heavy(&self) -> bool {
        // for a message without properties, as no message is known yet
        self.cost(0) > HEAVY
    }

    /// Returns whether a new message may match, by its tag hash or properties. Always true for an expensive filter,
    /// which is not evaluated here, because the appending thread waits for the result.
    pub fn matches_arrival(&self, tags_code: i64, properties: &[u8]) -> bool {
        match &self.filter {
            // the pull then evaluates the filter itself, on the thread for expensive filters
            Filter::Sql(_) if self.cost(properties.len()) > HEAVY => true,
            Filter::Sql(sql) => {
                let value = |name: &str| std::str::from_utf8(properties::get(properties, name)?).ok();
                sql.matches(value)
            }
            _ => self.matches_code(tags_code),
        }
    }
}

fn is_tag_type(expression_type: &str) -> bool {
    matches!(expression_type, "" | "TAG")
}

fn compile_sql(expression: &str) -> Filter {
    // the dialect of 4.9, which this broker implements; readers of stores accept more
    match Sql92::parse_dialect(expression, Dialect::V4) {
        Ok(sql) => Filter::Sql(sql.into()),
        Err(error) => Filter::Invalid(clip(&error.to_string())),
    }
}

/// Shortens a string from a client, which may be very long.
fn clip(text: &str) -> Box<str> {
    text.chars().take(MAX_TEXT).collect()
}

impl PullFilter for Subscription {
    #[inline]
    fn matches_code(&self, tags_code: i64) -> bool {
        match &self.filter {
            Filter::Codes(codes) => codes.matches_code(tags_code),
            _ => true,
        }
    }

    #[inline]
    fn reads_messages(&self) -> bool {
        matches!(self.filter, Filter::Sql(_))
    }

    fn matches_message(&self, message: &Message<'_>) -> bool {
        match &self.filter {
            Filter::Sql(sql) => sql.matches_message(message),
            _ => true,
        }
    }

    fn cost(&self, properties: usize) -> usize {
        match &self.filter {
            Filter::Sql(sql) => sql.cost(properties),
            _ => 0,
        }
    }
}
