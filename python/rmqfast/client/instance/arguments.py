"""Keyword arguments that the constructors of clients share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from rmqfast.client.instance.config import ClientConfig


class ClientArguments(TypedDict, total=False):
    """Keyword arguments of all clients.

    Attributes:
        name_server: `host:port`; several as a sequence or separated by `;`. Default: that of `config`, else the
            environment variable `NAMESRV_ADDR`.
        instance_name: Distinguishes clients of one process.
        namespace: Prefix of topics and groups.
        config: All other settings: TLS, accounts, intervals.

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
        enable_msg_trace: Whether to send message traces, which `Admin.messages.trace` reads.
        customized_trace_topic: The topic of traces. Default: `RMQ_SYS_TRACE_TOPIC`.
    """

    enable_msg_trace: bool
    customized_trace_topic: str | None
