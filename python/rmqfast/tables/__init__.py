"""Messages of stores and live topics as tables of a data lake: Parquet, Delta Lake and Apache Iceberg, exactly once."""

from rmqfast.store.report import Ingested
from rmqfast.tables.ingest import ingest

__all__ = ["Ingested", "ingest"]
