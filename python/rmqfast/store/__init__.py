"""Opens, scans and queries store directories, and appends to them. The Rust crate `store` does the work."""

from typing import TYPE_CHECKING, Any

from rmqfast._native import COLUMNS
from rmqfast.extras import import_extra
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.config import (
    BloomFilterData,
    ConsumerFilterData,
    ConsumerFilterTable,
    ConsumerOffsetTable,
    DataVersion,
    DelayOffsetTable,
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
    TopicConfig,
    TopicConfigTable,
    built_in_groups,
    built_in_topics,
)
from rmqfast.store.decode import infer
from rmqfast.store.diff import Difference, StoreDiff, diff_stores
from rmqfast.store.explanation import FilterUse, PieceExplanation, QueueRange, ScanExplanation
from rmqfast.store.message_stores import MessageStores, StoresArguments, StoresReadArguments, open_stores
from rmqfast.store.opening import MissingEnd, find_missing_end, open_store, repair
from rmqfast.store.reader import MessageStore
from rmqfast.store.report import ExportReport, IndexFile, StoreInfo, VerifyReport
from rmqfast.store.request import (
    BodyArguments,
    DecodeArguments,
    GetLimits,
    MessageArguments,
    ReadArguments,
    ScanArguments,
    ScanRequest,
    StoreArguments,
    milliseconds,
    time_range,
)
from rmqfast.store.retention import CleanedFile, CleanReport, RetentionOptions, plan_clean
from rmqfast.store.scan import Scan
from rmqfast.store.tail import Retained, Tail
from rmqfast.store.writer import AppendResult, LiveStore, QueueTimes, RecoveryReport, WritableStore

if TYPE_CHECKING:
    from rmqfast.store.dataset import ScanDataset

__all__ = [
    "COLUMNS",
    "AppendOptions",
    "AppendResult",
    "BloomFilterData",
    "BodyArguments",
    "CleanReport",
    "CleanedFile",
    "ConsumerFilterData",
    "ConsumerFilterTable",
    "ConsumerOffsetTable",
    "DataVersion",
    "DecodeArguments",
    "DelayOffsetTable",
    "Difference",
    "ExportReport",
    "FilterUse",
    "GetLimits",
    "IndexFile",
    "LiveStore",
    "MessageArguments",
    "MessageStore",
    "MessageStores",
    "MissingEnd",
    "PieceExplanation",
    "QueueRange",
    "QueueTimes",
    "ReadArguments",
    "RecoveryReport",
    "Retained",
    "RetentionOptions",
    "Scan",
    "ScanArguments",
    "ScanDataset",
    "ScanExplanation",
    "ScanRequest",
    "StoreArguments",
    "StoreDiff",
    "StoreInfo",
    "StoresArguments",
    "StoresReadArguments",
    "SubscriptionGroupConfig",
    "SubscriptionGroupTable",
    "Tail",
    "TopicConfig",
    "TopicConfigTable",
    "VerifyReport",
    "WritableStore",
    "built_in_groups",
    "built_in_topics",
    "diff_stores",
    "find_missing_end",
    "infer",
    "milliseconds",
    "open_store",
    "open_stores",
    "plan_clean",
    "repair",
    "time_range",
]


def __getattr__(name: str) -> Any:
    """Imports `ScanDataset` at first use, because it needs pyarrow."""
    if name != "ScanDataset":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_extra("pyarrow", "arrow")
    from rmqfast.store.dataset import ScanDataset

    return ScanDataset
