"""`Admin` administers a cluster. It has one attribute for each subject, such as topics and groups.

Source: `DefaultMQAdminExt`, `DefaultMQAdminExtImpl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

from rmqfast.admin.accounts import Accounts
from rmqfast.admin.admin_client import TIMEOUT, AdminClient
from rmqfast.admin.clusters import Brokers, Clusters
from rmqfast.admin.dead_letters import DeadLetters
from rmqfast.admin.explain import Explainer
from rmqfast.admin.groups import Groups
from rmqfast.admin.messages import Messages
from rmqfast.admin.offsets import Offsets
from rmqfast.admin.snapshot_taker import SnapshotTaker
from rmqfast.admin.topics import Topics
from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.config import DEFAULT_INSTANCE_NAME
from rmqfast.client.instance.exits import warn_unclosed
from rmqfast.pickling import not_picklable


@suggests_names
@not_picklable("make one in each process")
class Admin:
    """Inspects and changes a cluster. Threads may share an `Admin`.

    Each subject has its own methods, as `admin.topics.status("orders")`. The most common methods have a shortcut here:
    `create_topic`, `create_group` and `view_message`. Topic and group names get no namespace.

    Args:
        name_server: `host:port`, several separated by `;`. Default: that of `config`, or `NAMESRV_ADDR`.
        instance_name: Separates clients of one process.
        config: Other settings of the connection: TLS, accounts, addresses.
        timeout: Timeout of a request in seconds; three times as long for slow requests. The members of a group get
            three fifths of it, all together.

    Attributes:
        clusters: Clusters and their brokers.
        brokers: Status and configuration of each broker.
        accounts: Accounts of brokers, without their secrets.
        topics: Creates, changes, deletes and describes topics.
        groups: Creates, changes, deletes and describes consumer groups.
        offsets: Resets and copies offsets of groups.
        messages: Looks up messages and their traces.
        dead_letters: Lists and resends dead letters.
        explain: Explains the state of a message, a queue or a group.
        snapshot: Returns what all brokers tell of topics, groups and offsets, at one moment.

    Raises:
        ArgumentError: An address has no port.

    Example:
        >>> import rmqfast
        >>> with rmqfast.EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin:
        ...     admin.create_topic("orders", queues=2)
        ...     [offset.queue_id for offset in admin.topics.status("orders")]
        [0, 1]
    """

    def __init__(
        self,
        *,
        name_server: str | Sequence[str] | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        config: ClientConfig | None = None,
        timeout: Duration = TIMEOUT,
    ) -> None:
        changes: dict[str, Any] = {} if name_server is None else {"name_server": name_server}
        if instance_name != DEFAULT_INSTANCE_NAME:
            changes["instance_name"] = instance_name
        # Explicit arguments override the config.
        config = ClientConfig(**changes) if config is None else replace(config, **changes)
        self._client = client = AdminClient(config, seconds("timeout", timeout))
        self.clusters: Final = Clusters(client)
        self.brokers: Final = Brokers(client)
        self.accounts: Final = Accounts(client)
        self.topics: Final = Topics(client)
        self.groups: Final = Groups(client, self.topics)
        self.offsets: Final = Offsets(client, self.groups)
        self.messages: Final = Messages(client, self.groups)
        self.dead_letters: Final = DeadLetters(client, self.topics, self.groups)
        # Bound methods, so that `admin.explain(...)` is a call.
        self.explain: Final = Explainer(client, self.groups, self.messages).explain
        self.snapshot: Final = SnapshotTaker(client).snapshot
        self.create_topic: Final = self.topics.create
        self.create_group: Final = self.groups.create
        self.view_message: Final = self.messages.by_id

    def start(self) -> None:
        """Starts the client, as `with` does. Raises `ClientError` after an earlier start or without name servers."""
        self._client.start()

    def shutdown(self) -> None:
        """Closes the client. A second call does nothing."""
        self._client.shutdown()

    def __del__(self) -> None:
        # `__init__` may have failed before it set `_client`.
        if hasattr(self, "_client") and self._client.is_running:
            warn_unclosed(self, self._client.instance.pid, type(self).__name__)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
