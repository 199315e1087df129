"""The clients for asyncio. Names and methods are those of `rmqfast`, but methods are awaited.

A client belongs to the event loop in which it is first used, is started by `start()` or `async with`, and never blocks
the loop.
"""

from rmqfast.aio.admin import Admin
from rmqfast.aio.lite_pull_consumer import LitePullConsumer
from rmqfast.aio.offset_store import OffsetStore
from rmqfast.aio.producer import Producer, TransactionListener, TransactionProducer
from rmqfast.aio.pull_consumer import PullConsumer
from rmqfast.aio.push_consumer import PushConsumer

__all__ = [
    "Admin",
    "LitePullConsumer",
    "OffsetStore",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "TransactionListener",
    "TransactionProducer",
]
