"""A store directory: open, scan, look up. A Python face on the store crate."""

from rmqfast.store.reader import MessageStore, open_store
from rmqfast.store.request import COLUMNS, ScanRequest, milliseconds
from rmqfast.store.scan import Scan

__all__ = ["COLUMNS", "MessageStore", "Scan", "ScanRequest", "milliseconds", "open_store"]
