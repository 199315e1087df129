"""Checks that a broker's metadata database, `config/metadata.db`, has everything that was written to it."""

from rmqfast.store.metadata.check import check_metadata

__all__ = ["check_metadata"]
