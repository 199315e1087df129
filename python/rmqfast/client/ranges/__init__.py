"""Ranges of queues, with ends that are known, as Arrow batches: what a job reads, not a consumer of a group."""

from rmqfast.client.ranges.range_pull import RangePull
from rmqfast.client.ranges.range_request import QueueRange, RangeRequest
from rmqfast.client.ranges.topic_routes import TopicRoute, TopicRoutes

__all__ = ["QueueRange", "RangePull", "RangeRequest", "TopicRoute", "TopicRoutes"]
