"""The database of a broker's metadata, `config/metadata.db`: whether it has what was written to it."""

from rmqfast.store.metadata.check import check_metadata

__all__ = ["check_metadata"]
