"""The groups `live` and `cluster`: topics of running brokers in Spark, beside Kafka's; many queues, two workers."""

from live.group import live
from live.scale import cluster

__all__ = ["cluster", "live"]
