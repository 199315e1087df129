//! Tag expressions and SQL92: one evaluator for broker, scan and Spark.
