"""`Admin` for asyncio: the subjects of the blocking one, awaited.

Source: `DefaultMQAdminExt`.
"""

from __future__ import annotations

from typing import Any, Final

from rmqfast import admin as blocking
from rmqfast.admin import clusters, dead_letters, explain, groups, messages, offsets, topics
from rmqfast.aio import calls
from rmqfast.aio.awaited import awaited, made_as
from rmqfast.aio.calls import Calls
from rmqfast.arguments import suggests_names
from rmqfast.pickling import not_picklable


@suggests_names
@not_picklable("make one in each process")
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
        self.clusters: Final = Clusters(twin.clusters, self._calls)
        self.brokers: Final = Brokers(twin.brokers, self._calls)
        self.topics: Final = Topics(twin.topics, self._calls)
        self.groups: Final = Groups(twin.groups, self._calls)
        self.offsets: Final = Offsets(twin.offsets, self._calls)
        self.messages: Final = Messages(twin.messages, self._calls)
        self.dead_letters: Final = DeadLetters(twin.dead_letters, self._calls)
        self.explain: Final = Explainer(twin, self._calls).explain
        self.create_topic: Final = self.topics.create
        self.create_group: Final = self.groups.create
        self.view_message: Final = self.messages.by_id

    start: Final = calls.start
    shutdown: Final = calls.shutdown
    __aenter__: Final = calls.enter
    __aexit__: Final = calls.leave
    __del__: Final = calls.drop


class _Subject:
    """A subject of the blocking `Admin`, asked on a thread of the client's."""

    def __init__(self, twin: Any, calls: Calls) -> None:
        self._twin, self._calls = twin, calls


class Clusters(_Subject):
    """`admin.clusters`."""

    info: Final = awaited(clusters.Clusters.info)
    brokers: Final = awaited(clusters.Clusters.brokers)


class Brokers(_Subject):
    """`admin.clusters.brokers`."""

    status: Final = awaited(clusters.Brokers.status)
    config: Final = awaited(clusters.Brokers.config)
    update_config: Final = awaited(clusters.Brokers.update_config)


class Topics(_Subject):
    """`admin.topics.all`."""

    create: Final = awaited(topics.Topics.create)
    update: Final = awaited(topics.Topics.update)
    delete: Final = awaited(topics.Topics.delete)
    all: Final = awaited(topics.Topics.all)
    route: Final = awaited(topics.Topics.route)
    status: Final = awaited(topics.Topics.status)


class Groups(_Subject):
    """`admin.groups.all`."""

    create: Final = awaited(groups.Groups.create)
    update: Final = awaited(groups.Groups.update)
    delete: Final = awaited(groups.Groups.delete)
    all: Final = awaited(groups.Groups.all)
    of_topic: Final = awaited(groups.Groups.of_topic)
    progress: Final = awaited(groups.Groups.progress)
    connections: Final = awaited(groups.Groups.connections)
    producer_connections: Final = awaited(groups.Groups.producer_connections)
    running_info: Final = awaited(groups.Groups.running_info)
    subscription_conflicts: Final = awaited(groups.Groups.subscription_conflicts)


class Offsets(_Subject):
    """`admin.offsets`."""

    reset: Final = awaited(offsets.Offsets.reset)
    reset_by_time: Final = awaited(offsets.Offsets.reset_by_time)
    reset_to_begin: Final = awaited(offsets.Offsets.reset_to_begin)
    reset_to_end: Final = awaited(offsets.Offsets.reset_to_end)
    clone: Final = awaited(offsets.Offsets.clone)


class Messages(_Subject):
    """`admin.messages`."""

    by_id: Final = awaited(messages.Messages.by_id)
    by_key: Final = awaited(messages.Messages.by_key)
    by_unique_key: Final = awaited(messages.Messages.by_unique_key)
    by_offset: Final = awaited(messages.Messages.by_offset)
    trace: Final = awaited(messages.Messages.trace)
    track: Final = awaited(messages.Messages.track)


class DeadLetters(_Subject):
    """`admin.dead_letters.of_group`."""

    of_group: Final = awaited(dead_letters.DeadLetters.of_group)
    resend: Final = awaited(dead_letters.DeadLetters.resend)


class Explainer(_Subject):
    """`admin.explain`."""

    explain: Final = awaited(explain.Explainer.explain)
