"""Reads, writes, mirrors and serves RocketMQ data, in Python and Spark.

ARCHITECTURE.md shows the layers: a module imports only from lower layers.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rmqfast import errors
from rmqfast.errors import DamageWarning, DecodeWarning, RmqError, StoreError
from rmqfast.version import __version__

if TYPE_CHECKING:
    from rmqfast import aio
    from rmqfast.admin import Admin
    from rmqfast.client.consumer import ConsumeFromWhere, MessageSelector, MessageView
    from rmqfast.client.instance import ClientConfig
    from rmqfast.client.lite_pull import LitePullConsumer
    from rmqfast.client.producer import (
        LocalTransactionState,
        Producer,
        SendResult,
        SendStatus,
        TransactionListener,
        TransactionProducer,
        create_reply_message,
    )
    from rmqfast.client.pull import PullConsumer, PullResult, PullStatus
    from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, PushConsumer
    from rmqfast.cluster import MessageCluster, open_cluster
    from rmqfast.embedded import EmbeddedCluster
    from rmqfast.message import (
        BadBody,
        Damage,
        GetMessageResult,
        GetMessageStatus,
        Message,
        MessageExt,
        MessageQueue,
    )
    from rmqfast.mirror import Mirror, MirrorOptions, MirrorStatus
    from rmqfast.slave import Slave
    from rmqfast.store import (
        AppendOptions,
        AppendResult,
        CleanReport,
        ExportReport,
        GetLimits,
        MessageStore,
        MessageStores,
        RecoveryReport,
        Retained,
        RetentionOptions,
        Scan,
        ScanRequest,
        StoreInfo,
        Tail,
        VerifyReport,
        WritableStore,
        infer,
        open_store,
        open_stores,
    )

# only the application decides where logs go; without a handler, Python would print warnings to standard error
logging.getLogger("rmqfast").addHandler(logging.NullHandler())

__all__ = [
    "Admin",
    "AppendOptions",
    "AppendResult",
    "BadBody",
    "CleanReport",
    "ClientConfig",
    "ConsumeConcurrentlyStatus",
    "ConsumeFromWhere",
    "ConsumeOrderlyStatus",
    "Damage",
    "DamageWarning",
    "DecodeWarning",
    "EmbeddedCluster",
    "ExportReport",
    "GetLimits",
    "GetMessageResult",
    "GetMessageStatus",
    "LitePullConsumer",
    "LocalTransactionState",
    "Message",
    "MessageCluster",
    "MessageExt",
    "MessageQueue",
    "MessageSelector",
    "MessageStore",
    "MessageStores",
    "MessageView",
    "Mirror",
    "MirrorOptions",
    "MirrorStatus",
    "Producer",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "RecoveryReport",
    "Retained",
    "RetentionOptions",
    "RmqError",
    "Scan",
    "ScanRequest",
    "SendResult",
    "SendStatus",
    "Slave",
    "StoreError",
    "StoreInfo",
    "Tail",
    "TransactionListener",
    "TransactionProducer",
    "VerifyReport",
    "WritableStore",
    "__version__",
    "aio",
    "create_reply_message",
    "errors",
    "infer",
    "open_cluster",
    "open_store",
    "open_stores",
]


#: The modules of public names, which are imported at their first use, so that programs only pay for what they use.
_NAMES = {
    "rmqfast.admin": ("Admin",),
    "rmqfast.client.consumer": ("ConsumeFromWhere", "MessageSelector", "MessageView"),
    "rmqfast.client.instance": ("ClientConfig",),
    "rmqfast.client.lite_pull": ("LitePullConsumer",),
    "rmqfast.client.producer": (
        "LocalTransactionState",
        "Producer",
        "SendResult",
        "SendStatus",
        "TransactionListener",
        "TransactionProducer",
        "create_reply_message",
    ),
    "rmqfast.client.pull": ("PullConsumer", "PullResult", "PullStatus"),
    "rmqfast.client.push": ("ConsumeConcurrentlyStatus", "ConsumeOrderlyStatus", "PushConsumer"),
    "rmqfast.cluster": ("MessageCluster", "open_cluster"),
    "rmqfast.embedded": ("EmbeddedCluster",),
    "rmqfast.message": (
        "BadBody",
        "Damage",
        "GetMessageResult",
        "GetMessageStatus",
        "Message",
        "MessageExt",
        "MessageQueue",
    ),
    "rmqfast.mirror": ("Mirror", "MirrorOptions", "MirrorStatus"),
    "rmqfast.slave": ("Slave",),
    "rmqfast.store": (
        "AppendOptions",
        "AppendResult",
        "CleanReport",
        "ExportReport",
        "GetLimits",
        "MessageStore",
        "MessageStores",
        "RecoveryReport",
        "Retained",
        "RetentionOptions",
        "Scan",
        "ScanRequest",
        "StoreInfo",
        "Tail",
        "VerifyReport",
        "WritableStore",
        "infer",
        "open_store",
        "open_stores",
    ),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
#: Subpackages that are available as attributes without an import.
_PACKAGES = frozenset({"aio", "message", "store"})


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name in _PACKAGES:
        return import_module(f"rmqfast.{name}")
    if name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
        # later accesses do not call `__getattr__`
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
