"""`Admin` for asyncio, with the same attributes as the blocking class.

Source: RocketMQ's `DefaultMQAdminExt`.
"""

from __future__ import annotations

from typing import Any, Final

from rmqfast import admin as blocking
from rmqfast.admin import accounts, clusters, dead_letters, explain, groups, messages, offsets, snapshot_taker, topics
from rmqfast.aio import calls
from rmqfast.aio.calls import Calls
from rmqfast.aio.twin import awaitable, with_signature_of
from rmqfast.arguments import suggests_names
from rmqfast.pickling import not_picklable


@suggests_names
@not_picklable("make one in each process")
class Admin:
    """Inspects and administers a cluster. Tasks of one event loop may share it.

    Subjects, methods and arguments are those of `rmqfast.Admin`; methods are awaited.

    Example:
        >>> import asyncio, rmqfast
        >>> async def main(name_server):
        ...     async with Admin(name_server=name_server) as admin:
        ...         await admin.create_topic("orders", queues=2)
        ...         return [offset.queue_id for offset in await admin.topics.status("orders")]
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     asyncio.run(main(cluster.name_server))
        [0, 1]
    """

    @with_signature_of(blocking.Admin)
    def __init__(self, **named: Any) -> None:
        self._twin = twin = blocking.Admin(**named)
        self._calls = Calls(self, twin)
        self.clusters: Final = Clusters(twin.clusters, self._calls)
        self.brokers: Final = Brokers(twin.brokers, self._calls)
        self.accounts: Final = Accounts(twin.accounts, self._calls)
        self.topics: Final = Topics(twin.topics, self._calls)
        self.groups: Final = Groups(twin.groups, self._calls)
        self.offsets: Final = Offsets(twin.offsets, self._calls)
        self.messages: Final = Messages(twin.messages, self._calls)
        self.dead_letters: Final = DeadLetters(twin.dead_letters, self._calls)
        self.explain: Final = Explainer(twin, self._calls).explain
        self.snapshot: Final = SnapshotTaker(twin, self._calls).snapshot
        self.create_topic: Final = self.topics.create
        self.create_group: Final = self.groups.create
        self.view_message: Final = self.messages.by_id

    start: Final = calls.start
    shutdown: Final = calls.shutdown
    __aenter__: Final = calls.enter
    __aexit__: Final = calls.leave
    __del__: Final = calls.drop


class _Subject:
    """A part of the blocking `Admin`, such as its topics. Its methods are called on a thread of the client."""

    def __init__(self, twin: Any, calls: Calls) -> None:
        self._twin, self._calls = twin, calls


class Clusters(_Subject):
    info: Final = awaitable(clusters.Clusters.info)
    brokers: Final = awaitable(clusters.Clusters.brokers)


class Brokers(_Subject):
    status: Final = awaitable(clusters.Brokers.status)
    statuses: Final = awaitable(clusters.Brokers.statuses)
    config: Final = awaitable(clusters.Brokers.config)
    update_config: Final = awaitable(clusters.Brokers.update_config)


class Topics(_Subject):
    create: Final = awaitable(topics.Topics.create)
    update: Final = awaitable(topics.Topics.update)
    delete: Final = awaitable(topics.Topics.delete)
    all: Final = awaitable(topics.Topics.all)
    route: Final = awaitable(topics.Topics.route)
    status: Final = awaitable(topics.Topics.status)


class Accounts(_Subject):
    of_broker: Final = awaitable(accounts.Accounts.of_broker)


class Groups(_Subject):
    create: Final = awaitable(groups.Groups.create)
    update: Final = awaitable(groups.Groups.update)
    delete: Final = awaitable(groups.Groups.delete)
    all: Final = awaitable(groups.Groups.all)
    of_topic: Final = awaitable(groups.Groups.of_topic)
    progress: Final = awaitable(groups.Groups.progress)
    connections: Final = awaitable(groups.Groups.connections)
    producers: Final = awaitable(groups.Groups.producers)
    producer_connections: Final = awaitable(groups.Groups.producer_connections)
    running_info: Final = awaitable(groups.Groups.running_info)
    running_infos: Final = awaitable(groups.Groups.running_infos)
    subscription_conflicts: Final = awaitable(groups.Groups.subscription_conflicts)


class Offsets(_Subject):
    reset: Final = awaitable(offsets.Offsets.reset)
    reset_by_time: Final = awaitable(offsets.Offsets.reset_by_time)
    reset_to_begin: Final = awaitable(offsets.Offsets.reset_to_begin)
    reset_to_end: Final = awaitable(offsets.Offsets.reset_to_end)
    clone: Final = awaitable(offsets.Offsets.clone)
    preview: Final = awaitable(offsets.Offsets.preview)
    preview_clone: Final = awaitable(offsets.Offsets.preview_clone)


class Messages(_Subject):
    by_id: Final = awaitable(messages.Messages.by_id)
    by_key: Final = awaitable(messages.Messages.by_key)
    by_unique_key: Final = awaitable(messages.Messages.by_unique_key)
    page: Final = awaitable(messages.Messages.page)
    timeline: Final = awaitable(messages.Messages.timeline)
    traces_if_there: Final = awaitable(messages.Messages.traces_if_there)
    by_offset: Final = awaitable(messages.Messages.by_offset)
    trace: Final = awaitable(messages.Messages.trace)
    track: Final = awaitable(messages.Messages.track)


class DeadLetters(_Subject):
    of_group: Final = awaitable(dead_letters.DeadLetters.of_group)
    resend: Final = awaitable(dead_letters.DeadLetters.resend)


class Explainer(_Subject):
    explain: Final = awaitable(explain.Explainer.explain)


class SnapshotTaker(_Subject):
    snapshot: Final = awaitable(snapshot_taker.SnapshotTaker.snapshot)
