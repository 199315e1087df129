//! SQL92 filters on message properties. They give exactly the same results as RocketMQ's broker.
//!
//! Some rules of the broker are surprising. Text behind a complete expression is ignored. `NOT` binds tighter than `=`. `=` is false if the
//! right property is missing, and null if the left one is missing. A message does not match at all if one of its properties should be a
//! number and is not.
//!
//! Source: `SelectorParser.jj`, `ComparisonExpression`, `LogicExpression`, `UnaryExpression`, `ConstantExpression`.
mod evaluate;
mod lexer;
mod parser;
mod tree;

pub use evaluate::EvaluationError;
pub use lexer::Dialect;
pub use parser::MAX_DEPTH;
use tree::Tree;

use crate::error::{Error, Result};

/// Maximum length of an expression in bytes. A heartbeat has room for it.
pub const MAX_LEN: usize = 4 << 20;

#[derive(Debug, Clone)]
pub struct Sql92 {
    text: String,
    tree: Tree,
}

impl Sql92 {
    /// Compiles `text` in the 5.x dialect. This dialect accepts all expressions of 4.x, except for properties with
    /// the names of the three new operators.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_dialect(text, Dialect::default())
    }

    /// Compiles `text` as a broker with the given dialect does.
    pub fn parse_dialect(text: &str, dialect: Dialect) -> Result<Self> {
        if text.len() > MAX_LEN {
            return Err(Error::invalid("sql", format!("at most {MAX_LEN} bytes"), text.len()));
        }
        let tree = parser::parse(text, dialect).map_err(|fault| fault.of(text))?;
        Ok(Self { text: text.to_owned(), tree })
    }

    /// Returns whether a message matches. It matches if the result is TRUE, but not if it is FALSE, NULL or an error.
    pub fn matches<'p>(&self, property: impl Fn(&str) -> Option<&'p str>) -> bool {
        self.evaluate(property) == Ok(Some(true))
    }

    /// Evaluates the expression for a message. `None` stands for NULL. `property` returns the value of a property.
    pub fn evaluate<'p>(&self, property: impl Fn(&str) -> Option<&'p str>) -> Result<Option<bool>, EvaluationError> {
        evaluate::evaluate(&self.tree, &property)
    }

    /// Returns the names of the properties used, each once, in the order of their first use.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.tree.names.iter().map(AsRef::as_ref)
    }

    /// Returns the number of conditions, values and operators.
    pub fn parts(&self) -> usize {
        self.tree.nodes.len()
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests;
