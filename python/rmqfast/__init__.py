"""RocketMQ data in Python and Spark.

The layers, high to low; a module imports only what stands below it (a test holds this):

    cli > spark > store > message > _native | errors
"""

from rmqfast import errors
from rmqfast.errors import DamageWarning, RmqError, StoreError
from rmqfast.message import Damage, GetMessageResult, GetMessageStatus, Message, MessageExt
from rmqfast.store import (
    AppendOptions,
    AppendResult,
    CleanReport,
    ExportReport,
    GetLimits,
    MessageStore,
    RecoveryReport,
    Retained,
    RetentionOptions,
    Scan,
    ScanRequest,
    StoreInfo,
    Tail,
    VerifyReport,
    WritableStore,
    open_store,
)

__version__ = "0.1.0"

__all__ = [
    "AppendOptions",
    "AppendResult",
    "CleanReport",
    "Damage",
    "DamageWarning",
    "ExportReport",
    "GetLimits",
    "GetMessageResult",
    "GetMessageStatus",
    "Message",
    "MessageExt",
    "MessageStore",
    "RecoveryReport",
    "Retained",
    "RetentionOptions",
    "RmqError",
    "Scan",
    "ScanRequest",
    "StoreError",
    "StoreInfo",
    "Tail",
    "VerifyReport",
    "WritableStore",
    "__version__",
    "errors",
    "open_store",
]
