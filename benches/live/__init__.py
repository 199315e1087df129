"""The groups `live` and `stream`: topics of running brokers into Arrow and Spark, beside Kafka's and a store's."""

from live.group import live
from live.streams import stream

__all__ = ["live", "stream"]
