"""All requests that clients send, a method each.

Source: `MQClientAPIImpl`.
"""

from __future__ import annotations

from rmqfast.client.instance.client_requests import ClientRequests
from rmqfast.client.instance.message_requests import MessageRequests
from rmqfast.client.instance.offset_requests import OffsetRequests
from rmqfast.client.instance.route_requests import RouteRequests


class ClientApi(RouteRequests, ClientRequests, OffsetRequests, MessageRequests):
    """One method a request; brokers' addresses come first, name servers are chosen.

    An answer that is an error is a `ResponseError` with its code and remark; no answer is another `RemotingError`.
    """
