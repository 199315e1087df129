//! Decides which messages of a topic a group gets: by tags, or by an expression of SQL92.
//!
//! Source: `SubscriptionData`, `ConsumerFilterData`, `ExpressionMessageFilter`.
use rmqfast_store::filter::TagExpression;
use rmqfast_store::filter::sql92::{Dialect, Sql92};
use rmqfast_store::format::message::Message;
use rmqfast_store::format::properties;
use rmqfast_store::store::serve::{PullFilter, TagCodes};

/// Expressions of this type are SQL92; all others are tags.
pub const SQL92: &str = "SQL92";

/// Parts of an expression that anybody's thread may evaluate for a message: some 50 µs.
const HEAVY: usize = 512;

/// A group's subscription to a topic.
#[derive(Debug)]
pub struct Subscription {
    /// Milliseconds: a later one is newer.
    pub version: i64,
    filter: Filter,
}

#[derive(Debug)]
enum Filter {
    All,
    Codes(TagCodes),
    Sql(Box<Sql92>),
    /// It does not compile: where it is asked for by a request, everything matches.
    BrokenSql,
}

impl Subscription {
    /// As a heartbeat registers it: by the codes of its tags, or by an SQL92 expression.
    pub fn new(expression_type: &str, sub_string: &str, version: i64, codes: &[i32]) -> Self {
        let filter = match expression_type {
            SQL92 => sql(sub_string),
            _ if sub_string == "*" => Filter::All,
            _ => Filter::Codes(TagCodes::new(codes.iter().copied())),
        };
        Self { version, filter }
    }

    /// Each message.
    pub fn all(version: i64) -> Self {
        Self { version, filter: Filter::All }
    }

    /// As a pull brings it along; `None` for tags that cannot be read.
    pub fn parse(expression_type: Option<&str>, text: &str, version: i64) -> Option<Self> {
        let filter = match expression_type {
            Some(SQL92) => sql(text),
            _ => match TagExpression::parse(text).ok()? {
                tags if tags.is_all() => Filter::All,
                tags => Filter::Codes(TagCodes::new(tags.codes().iter().copied())),
            },
        };
        Some(Self { version, filter })
    }

    /// Whether it is an expression of SQL92.
    pub fn is_sql(&self) -> bool {
        matches!(self.filter, Filter::Sql(_) | Filter::BrokenSql)
    }

    /// Whether it is an expression of SQL92 that does not compile.
    pub fn is_broken(&self) -> bool {
        matches!(self.filter, Filter::BrokenSql)
    }

    /// Whether its pulls are answered aside from the threads of the sockets.
    pub fn is_heavy(&self) -> bool {
        self.cost(0) > HEAVY
    }

    /// Whether a message that arrived is worth a look: by its tags code, then by its properties. What would cost much is not
    /// asked: whoever stores messages waits for it.
    pub fn matches_arrival(&self, tags_code: i64, properties: &[u8]) -> bool {
        match &self.filter {
            Filter::Sql(_) if self.cost(properties.len()) > HEAVY => true,
            Filter::Sql(sql) => {
                let value = |name: &str| std::str::from_utf8(properties::get(properties, name)?).ok();
                sql.matches(value)
            }
            _ => self.matches_code(tags_code),
        }
    }
}

fn sql(text: &str) -> Filter {
    Sql92::parse_dialect(text, Dialect::V4).map_or(Filter::BrokenSql, |sql| Filter::Sql(sql.into()))
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
