"""RocketMQ data in Python and Spark.

The layers, high to low; a module imports only what stands below it (a test holds this):

    cli | otel > aio | spark | mirror > admin | testing > embedded > broker | nameserver | client > remoting > store
    > message > _native | errors
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rmqfast import errors
from rmqfast.errors import DamageWarning, RmqError, StoreError
from rmqfast.message import Damage, GetMessageResult, GetMessageStatus, Message, MessageExt, MessageQueue
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
    from rmqfast.embedded import EmbeddedCluster
    from rmqfast.mirror import Mirror, MirrorOptions, MirrorStatus

# what is logged is the application's to show: without this, warnings would go to standard error of who shows nothing
logging.getLogger("rmqfast").addHandler(logging.NullHandler())

__all__ = [
    "Admin",
    "AppendOptions",
    "AppendResult",
    "CleanReport",
    "ClientConfig",
    "ConsumeConcurrentlyStatus",
    "ConsumeFromWhere",
    "ConsumeOrderlyStatus",
    "Damage",
    "DamageWarning",
    "EmbeddedCluster",
    "ExportReport",
    "GetLimits",
    "GetMessageResult",
    "GetMessageStatus",
    "LitePullConsumer",
    "LocalTransactionState",
    "Message",
    "MessageExt",
    "MessageQueue",
    "MessageSelector",
    "MessageStore",
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
    "open_store",
]


#: Where names come from that most programs do not need: they are imported when they are asked for.
_LATER = {
    "MessageView": "rmqfast.client.consumer",
    "Admin": "rmqfast.admin",
    "ConsumeFromWhere": "rmqfast.client.consumer",
    "MessageSelector": "rmqfast.client.consumer",
    "PullResult": "rmqfast.client.pull",
    "PullStatus": "rmqfast.client.pull",
    "ClientConfig": "rmqfast.client.instance",
    "LitePullConsumer": "rmqfast.client.lite_pull",
    "LocalTransactionState": "rmqfast.client.producer",
    "Producer": "rmqfast.client.producer",
    "SendResult": "rmqfast.client.producer",
    "SendStatus": "rmqfast.client.producer",
    "TransactionListener": "rmqfast.client.producer",
    "TransactionProducer": "rmqfast.client.producer",
    "create_reply_message": "rmqfast.client.producer",
    "PullConsumer": "rmqfast.client.pull",
    "ConsumeConcurrentlyStatus": "rmqfast.client.push",
    "ConsumeOrderlyStatus": "rmqfast.client.push",
    "PushConsumer": "rmqfast.client.push",
    "EmbeddedCluster": "rmqfast.embedded",
    "Mirror": "rmqfast.mirror",
    "MirrorOptions": "rmqfast.mirror",
    "MirrorStatus": "rmqfast.mirror",
    "Slave": "rmqfast.slave",
}


def __getattr__(name: str) -> Any:
    """What most programs do not need is imported when it is asked for."""
    if name == "aio":
        return import_module("rmqfast.aio")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
