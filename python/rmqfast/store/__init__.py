"""A store directory: open, scan, look up. A Python face on the store crate."""

from rmqfast.store.reader import MessageStore, open_store
from rmqfast.store.report import IndexFile, StoreInfo, VerifyReport
from rmqfast.store.request import COLUMNS, ScanRequest, milliseconds
from rmqfast.store.scan import Scan

__all__ = [
    "COLUMNS",
    "IndexFile",
    "MessageStore",
    "Scan",
    "ScanRequest",
    "StoreInfo",
    "VerifyReport",
    "milliseconds",
    "open_store",
]
