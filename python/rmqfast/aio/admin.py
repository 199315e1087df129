"""Administration of a cluster.

Source: `DefaultMQAdminExt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rmqfast import admin as blocking
from rmqfast.admin.asking import TIMEOUT
from rmqfast.aio.awaited import awaited
from rmqfast.aio.client import Client
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.config import DEFAULT_INSTANCE_NAME
from rmqfast.store.config import SubscriptionGroupConfig


class Admin(Client[blocking.Admin]):
    """Looks into a cluster, and changes it; the tasks of one loop may share it.

    The methods are those of `rmqfast.Admin`, with the same parameters, and are awaited.

    Args:
        name_server: `host:port`, several separated by `;`; unless given, that of `config`, or the environment's
            `NAMESRV_ADDR`.
        instance_name: Sets clients of one process apart.
        config: Everything else about the cluster: TLS, accounts, addresses.
        timeout: How long answers are waited for, in seconds; three times as long where a broker has to compute or to
            ask a client.

    Raises:
        ArgumentError: An address without a port.

    Example:
        >>> import asyncio, rmqfast
        >>> async def main(name_server):
        ...     async with Admin(name_server=name_server) as admin:
        ...         await admin.create_topic("orders", queues=2)
        ...         return [offset.queue_id for offset in await admin.topic_stats("orders")]
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     asyncio.run(main(cluster.name_server))
        [0, 1]

    Source: `DefaultMQAdminExt`.
    """

    def __init__(
        self,
        *,
        name_server: str | Sequence[str] | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        config: ClientConfig | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        super().__init__(
            blocking.Admin(name_server=name_server, instance_name=instance_name, config=config, timeout=timeout)
        )

    # clusters and brokers
    brokers = awaited(blocking.Admin.brokers)
    cluster_info = awaited(blocking.Admin.cluster_info)
    broker_config = awaited(blocking.Admin.broker_config)
    update_broker_config = awaited(blocking.Admin.update_broker_config)
    broker_runtime_stats = awaited(blocking.Admin.broker_runtime_stats)

    # topics
    create_topic = awaited(blocking.Admin.create_topic)
    update_topic = awaited(blocking.Admin.update_topic)
    delete_topic = awaited(blocking.Admin.delete_topic)
    topics = awaited(blocking.Admin.topics)
    topic_route = awaited(blocking.Admin.topic_route)
    topic_stats = awaited(blocking.Admin.topic_stats)
    topic_groups = awaited(blocking.Admin.topic_groups)

    # groups
    delete_group = awaited(blocking.Admin.delete_group)
    groups = awaited(blocking.Admin.groups)

    # clients
    consumer_connections = awaited(blocking.Admin.consumer_connections)
    producer_connections = awaited(blocking.Admin.producer_connections)
    running_info = awaited(blocking.Admin.running_info)
    subscription_conflicts = awaited(blocking.Admin.subscription_conflicts)

    # offsets
    consume_stats = awaited(blocking.Admin.consume_stats)
    reset_offset = awaited(blocking.Admin.reset_offset)
    reset_offset_by_time = awaited(blocking.Admin.reset_offset_by_time)
    reset_offset_to_begin = awaited(blocking.Admin.reset_offset_to_begin)
    reset_offset_to_end = awaited(blocking.Admin.reset_offset_to_end)
    skip_accumulated = awaited(blocking.Admin.skip_accumulated)
    clone_offsets = awaited(blocking.Admin.clone_offsets)

    # dead letters
    dead_letters = awaited(blocking.Admin.dead_letters)
    resend_dead_letter = awaited(blocking.Admin.resend_dead_letter)

    # messages, and what became of them
    view_message = awaited(blocking.Admin.view_message)
    query_message = awaited(blocking.Admin.query_message)
    query_message_by_unique_key = awaited(blocking.Admin.query_message_by_unique_key)
    query_message_by_offset = awaited(blocking.Admin.query_message_by_offset)
    query_msg_trace_by_id = awaited(blocking.Admin.query_msg_trace_by_id)
    message_track = awaited(blocking.Admin.message_track)
    explain = awaited(blocking.Admin.explain)

    # those two take settings by any name, which `awaited` cannot say
    async def create_group(
        self, group: str | SubscriptionGroupConfig, *, cluster: str | None = None, **settings: Any
    ) -> None:
        """Makes a group on the masters of a cluster; one that is there gets what is given, and defaults.

        Args:
            group: Its name, or all of it.
            cluster: The cluster; all of them unless given.
            **settings: Fields of `SubscriptionGroupConfig`, as `retry_max_times=3`.

        Raises:
            ClientError: A name that groups may not have, no such cluster.
            ArgumentError: A setting that there is not.
            ResponseError: A broker refuses.

        Source: `UpdateSubGroupSubCommand`.
        """
        await self._ask(self._twin.create_group, group, cluster=cluster, **settings)

    async def update_group(self, group: str, *, cluster: str | None = None, **settings: Any) -> None:
        """Changes a group; what is not given stays as it is, broker by broker.

        Args:
            group: The group.
            cluster: The cluster; all of them unless given.
            **settings: Fields of `SubscriptionGroupConfig`, as `retry_max_times=3`.

        Raises:
            ClientError: 26, no broker has the group.
            ArgumentError: A setting that there is not.
            ResponseError: A broker refuses.
        """
        await self._ask(self._twin.update_group, group, cluster=cluster, **settings)
