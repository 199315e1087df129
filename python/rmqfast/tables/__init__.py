"""Messages of stores and live topics as tables of a data lake: Parquet, Delta Lake and Apache Iceberg, exactly once."""

from rmqfast.tables.ingest import ingest

__all__ = ["ingest"]
