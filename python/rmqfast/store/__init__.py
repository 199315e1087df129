"""A store directory: open, scan, look up, append. A Python face on the store crate."""

from rmqfast.store.get_limits import GetLimits
from rmqfast.store.opening import open_store, repair
from rmqfast.store.reader import MessageStore
from rmqfast.store.report import ExportReport, IndexFile, StoreInfo, VerifyReport
from rmqfast.store.request import COLUMNS, ScanRequest, milliseconds
from rmqfast.store.scan import Scan
from rmqfast.store.tail import Retained, Tail
from rmqfast.store.writer import AppendOptions, AppendResult, RecoveryReport, WritableStore

__all__ = [
    "COLUMNS",
    "AppendOptions",
    "AppendResult",
    "ExportReport",
    "GetLimits",
    "IndexFile",
    "MessageStore",
    "RecoveryReport",
    "Retained",
    "Scan",
    "ScanRequest",
    "StoreInfo",
    "Tail",
    "VerifyReport",
    "WritableStore",
    "milliseconds",
    "open_store",
    "repair",
]
