//! Message filters: tag expressions and SQL92. Broker, scan and Spark use the same evaluator.
pub mod sql92;
pub mod tag;

pub use sql92::Sql92;
pub use tag::TagExpression;
