"""Keyword arguments that the constructors of clients share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from rmqfast.client.instance.config import ClientConfig


class ClientArguments(TypedDict, total=False):
    """Keyword arguments of every client.

    Attributes:
        name_server: `host:port`, several separated by `;` or as a sequence; by default that of `config`, else the
            environment's `NAMESRV_ADDR`.
        instance_name: Tells clients of one process apart.
        namespace: Prefixes topics and groups.
        config: Everything else about the cluster: TLS, accounts, timers.

    Example:
        >>> from rmqfast import PullConsumer
        >>> from rmqfast.client.instance import ClientArguments
        >>> cluster: ClientArguments = {"name_server": "127.0.0.1:9876", "namespace": "test"}
        >>> PullConsumer("books", **cluster).group
        'test%books'
    """

    name_server: str | Sequence[str] | None
    instance_name: str
    namespace: str
    config: ClientConfig | None


class TracedClientArguments(ClientArguments, total=False):
    """Keyword arguments of clients that can send traces.

    Attributes:
        enable_msg_trace: Whether to send traces of its messages; `Admin.messages.trace` reads them.
        customized_trace_topic: The topic of traces; by default `RMQ_SYS_TRACE_TOPIC`.
    """

    enable_msg_trace: bool
    customized_trace_topic: str | None
