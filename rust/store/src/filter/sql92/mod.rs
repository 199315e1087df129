//! SQL92 filters over message properties, with exactly the results of RocketMQ's broker.
//!
//! Surprising behaviour of the broker: it ignores text after a complete expression; `NOT` binds tighter than `=`; `=` is false if the
//! right property is missing and null if the left one is; a number that does not parse makes the whole expression not match.
//!
//! Source: `SelectorParser.jj`, `ComparisonExpression`, `LogicExpression`, `UnaryExpression`, `ConstantExpression`.
mod builder;
mod evaluate;
mod lexer;
mod number;
mod parser;
mod tree;

pub use builder::MAX_DEPTH;
pub use evaluate::EvaluationError;
pub use lexer::Dialect;
use tree::Tree;

use crate::error::{Error, Result};

/// The longest expression, in bytes: a heartbeat has room for it.
pub const MAX_LEN: usize = 4 << 20;

/// A compiled SQL92 expression.
#[derive(Debug, Clone)]
pub struct Sql92 {
    text: String,
    tree: Tree,
}

impl Sql92 {
    /// Compiles `text` in the 5.x dialect, which reads all of 4.x except for three names.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_dialect(text, Dialect::default())
    }

    /// Compiles `text` as a broker of `dialect` would.
    pub fn parse_dialect(text: &str, dialect: Dialect) -> Result<Self> {
        if text.len() > MAX_LEN {
            return Err(Error::invalid("sql", format!("at most {MAX_LEN} bytes"), text.len()));
        }
        let tree = parser::parse(text, dialect).map_err(|fault| fault.of(text))?;
        Ok(Self { text: text.to_owned(), tree })
    }

    /// Whether the result is TRUE, and not FALSE, NULL or an error.
    pub fn matches<'p>(&self, property: impl Fn(&str) -> Option<&'p str>) -> bool {
        self.evaluate(property) == Ok(Some(true))
    }

    /// The three-valued result, `None` for NULL.
    pub fn evaluate<'p>(&self, property: impl Fn(&str) -> Option<&'p str>) -> Result<Option<bool>, EvaluationError> {
        evaluate::evaluate(&self.tree, &property)
    }

    /// The names of the properties used, each once, in the order of their first use.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.tree.names.iter().map(AsRef::as_ref)
    }

    /// The number of conditions, values and operators.
    pub fn parts(&self) -> usize {
        self.tree.nodes.len()
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests;
