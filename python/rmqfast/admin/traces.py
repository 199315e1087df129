"""What traces tell of a message.

Source: `QueryMsgTraceByIdSubCommand`.
"""

from __future__ import annotations

from rmqfast.admin.messages import LATEST, Messages
from rmqfast.client.trace import TRACE_TOPIC, TraceView, trace_views


class Traces(Messages):
    """What an administrator asks of the trace topic."""

    def query_msg_trace_by_id(
        self,
        message_id: str,
        *,
        trace_topic: str = TRACE_TOPIC,
        max_messages: int = 64,
        begin_timestamp: int = 0,
        end_timestamp: int = LATEST,
    ) -> list[TraceView]:
        """What became of a message by the traces of those that sent and consumed it, step by step.

        Clients tell it only where `enable_msg_trace` says so, and half a second later or so.

        Args:
            message_id: The id that the producer gave; also one of a batch of this package's.
            trace_topic: Where the clients send traces.
            max_messages: Of the trace topic, how many at most, of each broker; each may have several steps.
            begin_timestamp: Traces stored at this time or later, in milliseconds since 1970.
            end_timestamp: Traces stored at this time or earlier.

        Returns:
            The steps in the order in which they happened; none where no trace tells of it.

        Raises:
            ResponseError: 17, there is no such trace topic.

        Example:
            >>> import time, rmqfast
            >>> from rmqfast.admin import Admin
            >>> from rmqfast.client.producer import Producer
            >>> with rmqfast.EmbeddedCluster(config={"traceTopicEnable": "true"}) as cluster:
            ...     with Producer("shop", name_server=cluster.name_server, enable_msg_trace=True) as producer:
            ...         sent = producer.send(rmqfast.Message("orders", b"paid", tags="paid"))
            ...     with Admin(name_server=cluster.name_server) as admin:
            ...         (step,) = admin.query_msg_trace_by_id(sent.msg_id)
            >>> step.trace_type.value, step.group, step.topic, step.tags, step.status
            ('Pub', 'shop', 'orders', 'paid', 'success')

        Source: `QueryMsgTraceByIdSubCommand.queryTraceByMsgId`.
        """
        found = self.query_message(
            trace_topic,
            message_id,
            max_messages=max_messages,
            begin_timestamp=begin_timestamp,
            end_timestamp=end_timestamp,
        )
        return trace_views(message_id, found)
