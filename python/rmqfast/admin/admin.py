"""Administration of a cluster.

Source: `DefaultMQAdminExt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from rmqfast.admin.asking import TIMEOUT
from rmqfast.admin.dead_letters import DeadLetters
from rmqfast.admin.explain import Explanations
from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.client.instance.config import DEFAULT_INSTANCE_NAME
from rmqfast.errors import ClientError


class Admin(Explanations, DeadLetters):
    """Looks into a cluster, and changes it; threads may share it.

    Names of topics and groups are those that brokers have: no namespace is put before them.

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
        >>> import rmqfast
        >>> with rmqfast.EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin:
        ...     admin.create_topic("orders", queues=2)
        ...     [offset.queue_id for offset in admin.topic_stats("orders")]
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
        changed: dict[str, Any] = {} if name_server is None else {"name_server": name_server}
        if instance_name != DEFAULT_INSTANCE_NAME:
            changed["instance_name"] = instance_name
        super().__init__(ClientConfig(**changed) if config is None else replace(config, **changed), timeout=timeout)

    def start(self) -> None:
        """Starts it; `with` does, too.

        Raises:
            ClientError: It was started before, or no name server is known.

        Source: `DefaultMQAdminExtImpl.start`.
        """
        with self._lock:
            if self._is_started:
                raise ClientError(
                    "the Admin was started before",
                    next_step="an Admin is started once: make a new one",
                )
            config = self._config.with_pid_instance_name()
            instance = ClientInstance.of(config, config.client_id())
            try:
                instance.start()
            except BaseException:
                instance.release()
                raise
            self._running, self._is_started = instance, True

    def shutdown(self) -> None:
        """Ends it; once more is nothing.

        Source: `DefaultMQAdminExtImpl.shutdown`.
        """
        with self._lock:
            instance, self._running = self._running, None
        if instance is not None:
            instance.release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
