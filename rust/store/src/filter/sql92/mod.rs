//! SQL92 filters over message properties, judged exactly as RocketMQ's broker judges them.
//!
//! What surprises, all of it the broker's behaviour: text after a complete expression is ignored, `NOT` binds tighter
//! than `=`, `=` with a missing right side is false while a missing left side is null, and one number that does not
//! parse makes the whole expression not match.
//!
//! Source: `SelectorParser.jj`, `ComparisonExpression`, `LogicExpression`, `UnaryExpression`, `ConstantExpression`.
mod builder;
mod evaluate;
mod fault;
mod lexer;
mod literal;
mod number;
mod parser;
mod tree;

pub use builder::MAX_DEPTH;
pub use evaluate::EvaluationError;
pub use lexer::Dialect;
use tree::Tree;

use crate::error::{Error, Result};

/// The longest expression that is read, in bytes: what a heartbeat has room for.
pub const MAX_LEN: usize = 4 << 20;

/// A compiled SQL92 expression.
#[derive(Debug, Clone)]
pub struct Sql92 {
    text: String,
    tree: Tree,
    /// Byte position of the first token that the broker would not look at.
    end: usize,
}

impl Sql92 {
    /// Compiles `text` in the 5.x dialect, which also reads all of 4.x but for three names.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_dialect(text, Dialect::default())
    }

    /// Compiles `text` as a broker of `dialect` would.
    pub fn parse_dialect(text: &str, dialect: Dialect) -> Result<Self> {
        if text.len() > MAX_LEN {
            return Err(Error::invalid("sql", format!("at most {MAX_LEN} bytes"), text.len()));
        }
        let (tree, end) = parser::parse(text, dialect).map_err(|fault| fault.of(text))?;
        Ok(Self { text: text.to_owned(), tree, end })
    }

    /// Whether a message with these properties is taken: the result is TRUE, not FALSE, NULL or an error.
    pub fn matches<'p>(&self, property: impl Fn(&str) -> Option<&'p str>) -> bool {
        self.evaluate(property) == Ok(Some(true))
    }

    /// The three-valued result, `None` for NULL, or why there is none.
    pub fn evaluate<'p>(&self, property: impl Fn(&str) -> Option<&'p str>) -> Result<Option<bool>, EvaluationError> {
        evaluate::evaluate(&self.tree, &property)
    }

    /// The names of the properties used, each once, in the order of their first use.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.tree.names.iter().map(AsRef::as_ref)
    }

    /// How many conditions, values and operators it has.
    pub fn parts(&self) -> usize {
        self.tree.nodes.len()
    }

    /// The expression as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The rest of the text, which RocketMQ silently ignores; empty if all of it counts.
    pub fn ignored(&self) -> &str {
        &self.text[self.end..]
    }
}

#[cfg(test)]
mod tests;
