"""Spark's tables of messages: Delta, Iceberg and Parquet."""
