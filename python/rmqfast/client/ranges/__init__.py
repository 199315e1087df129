"""Reads fixed ranges of queues as Arrow batches, for jobs without a consumer group."""

from rmqfast.client.ranges.range_pull import RangePull
from rmqfast.client.ranges.range_request import QueueRange, RangeRequest
from rmqfast.client.ranges.topic_routes import TopicRoute, TopicRoutes

__all__ = ["QueueRange", "RangePull", "RangeRequest", "TopicRoute", "TopicRoutes"]
