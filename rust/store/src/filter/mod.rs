//! Filters over messages, tag expressions and SQL92: one evaluator for broker, scan and Spark.
pub mod sql92;
pub mod tag;

pub use sql92::Sql92;
pub use tag::TagExpression;
