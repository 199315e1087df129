"""`Admin` for asyncio: the subjects of the blocking one, awaited.

Source: `DefaultMQAdminExt`.
"""

from __future__ import annotations

from typing import Any

from rmqfast import admin as blocking
from rmqfast.admin import clusters, dead_letters, explain, groups, messages, offsets, topics
from rmqfast.aio import calls
from rmqfast.aio.awaited import awaited, made_as
from rmqfast.aio.calls import Calls


class Admin:
    """Looks into a cluster, and changes it; the tasks of one loop may share it.

    Subjects and methods are those of `rmqfast.Admin`, awaited; both are made from the same arguments.

    Example:
        >>> import asyncio, rmqfast
        >>> async def main(name_server):
        ...     async with Admin(name_server=name_server) as admin:
        ...         await admin.create_topic("orders", queues=2)
        ...         return [offset.queue_id for offset in await admin.topics.status("orders")]
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     asyncio.run(main(cluster.name_server))
        [0, 1]

    Source: `DefaultMQAdminExt`.
    """

    @made_as(blocking.Admin)
    def __init__(self, **named: Any) -> None:
        self._twin = twin = blocking.Admin(**named)
        self._calls = Calls(self, twin)
        self.clusters = Clusters(twin.clusters, self._calls)
        self.brokers = Brokers(twin.brokers, self._calls)
        self.topics = Topics(twin.topics, self._calls)
        self.groups = Groups(twin.groups, self._calls)
        self.offsets = Offsets(twin.offsets, self._calls)
        self.messages = Messages(twin.messages, self._calls)
        self.dead_letters = DeadLetters(twin.dead_letters, self._calls)
        self.explain = Explainer(twin, self._calls).explain
        self.create_topic = self.topics.create
        self.create_group = self.groups.create
        self.view_message = self.messages.by_id

    start = calls.start
    shutdown = calls.shutdown
    __aenter__ = calls.enter
    __aexit__ = calls.leave


class _Subject:
    """A subject of the blocking `Admin`, asked on a thread of the client's."""

    def __init__(self, twin: Any, calls: Calls) -> None:
        self._twin, self._calls = twin, calls


class Clusters(_Subject):
    """`admin.clusters`."""

    info = awaited(clusters.Clusters.info)
    brokers = awaited(clusters.Clusters.brokers)


class Brokers(_Subject):
    """`admin.clusters.brokers`."""

    status = awaited(clusters.Brokers.status)
    config = awaited(clusters.Brokers.config)
    update_config = awaited(clusters.Brokers.update_config)


class Topics(_Subject):
    """`admin.topics.all`."""

    create = awaited(topics.Topics.create)
    update = awaited(topics.Topics.update)
    delete = awaited(topics.Topics.delete)
    all = awaited(topics.Topics.all)
    route = awaited(topics.Topics.route)
    status = awaited(topics.Topics.status)


class Groups(_Subject):
    """`admin.groups.all`."""

    create = awaited(groups.Groups.create)
    update = awaited(groups.Groups.update)
    delete = awaited(groups.Groups.delete)
    all = awaited(groups.Groups.all)
    of_topic = awaited(groups.Groups.of_topic)
    progress = awaited(groups.Groups.progress)
    connections = awaited(groups.Groups.connections)
    producer_connections = awaited(groups.Groups.producer_connections)
    running_info = awaited(groups.Groups.running_info)
    subscription_conflicts = awaited(groups.Groups.subscription_conflicts)


class Offsets(_Subject):
    """`admin.offsets`."""

    reset = awaited(offsets.Offsets.reset)
    reset_by_time = awaited(offsets.Offsets.reset_by_time)
    reset_to_begin = awaited(offsets.Offsets.reset_to_begin)
    reset_to_end = awaited(offsets.Offsets.reset_to_end)
    clone = awaited(offsets.Offsets.clone)


class Messages(_Subject):
    """`admin.messages`."""

    by_id = awaited(messages.Messages.by_id)
    by_key = awaited(messages.Messages.by_key)
    by_unique_key = awaited(messages.Messages.by_unique_key)
    by_offset = awaited(messages.Messages.by_offset)
    trace = awaited(messages.Messages.trace)
    track = awaited(messages.Messages.track)


class DeadLetters(_Subject):
    """`admin.dead_letters.of_group`."""

    of_group = awaited(dead_letters.DeadLetters.of_group)
    resend = awaited(dead_letters.DeadLetters.resend)


class Explainer(_Subject):
    """`admin.explain`."""

    explain = awaited(explain.Explainer.explain)
