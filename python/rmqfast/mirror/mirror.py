"""`Mirror`: live copies of a cluster's brokers, a store directory each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from rmqfast.admin.admin_client import TIMEOUT, AdminClient
from rmqfast.admin.topics import Topics
from rmqfast.arguments import suggests_names
from rmqfast.broker.topics.topic_names import WAITING_TOPICS
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import MirrorError
from rmqfast.mirror.broker_mirror import BrokerMirror
from rmqfast.mirror.copy_directory import NAME, CopyDirectory
from rmqfast.mirror.options import MirrorOptions
from rmqfast.mirror.status import MirrorState, MirrorStatus
from rmqfast.paths import exists, local_path
from rmqfast.pickling import not_picklable
from rmqfast.store.replica import newest_copy

__all__ = ["Mirror"]


@suggests_names
@not_picklable("make one in each process")
class Mirror:
    """Copies the logs of a cluster's masters into store directories, and goes on as they grow.

    Each broker gets the directory of its name below `directory`: a store like the broker's, byte for byte, with consume
    queues, index and configuration; or, if its options name topics, a store of these alone, as an export makes one.
    Whatever reads a store reads it, while it grows. The master takes the mirror for no replica: no send waits for it.

    Args:
        directory: Where the stores are, or are to be.
        name_server: `host:port`, several separated by `;`; unless given, that of `config`, or the environment's
            `NAMESRV_ADDR`.
        brokers: Names of the brokers; the cluster's only one unless given.
        all_brokers: Mirror all that have a master now.
        options: How.
        once: End where the logs ended when the mirror caught up with them.
        config: Everything else about the cluster: TLS, accounts.

    Raises:
        ClientError: No name server is known, or none answers.
        MirrorError: No such broker, or several where none was named; a topic that no broker has.

    Example:
        >>> import rmqfast
        >>> from rmqfast import EmbeddedCluster, Message, Mirror, Producer
        >>> copies = getfixture("tmp_path") / "copies"
        >>> with EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        ...     sent = producer.send(Message("orders", b"paid"))
        ...     with Mirror(copies, name_server=cluster.name_server, once=True) as mirror:
        ...         mirror.wait(60)
        True
        >>> with rmqfast.open_store(copies / sent.queue.broker_name) as copy:
        ...     copy.scan("orders", columns=["body"]).to_arrow()["body"].to_pylist()
        [b'paid']

    Source: `HAClient`, `SlaveSynchronize`.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        name_server: str | Sequence[str] | None = None,
        brokers: Sequence[str] = (),
        all_brokers: bool = False,
        options: MirrorOptions | None = None,
        once: bool = False,
        config: ClientConfig | None = None,
    ) -> None:
        changes: dict[str, Any] = {} if name_server is None else {"name_server": name_server}
        config = ClientConfig(**changes) if config is None else replace(config, **changes)
        self._client, self._tls = AdminClient(config, TIMEOUT), config.tls
        self._directory = local_path(directory, "directory")
        self._brokers, self._all, self._once = tuple(brokers), all_brokers, once
        self._options = options or MirrorOptions()
        self._mirrors: list[BrokerMirror] = []

    def start(self) -> None:
        """Begins; `with` does, too.

        Raises:
            ClientError: It was started before; no name server is known, or none answers.
            MirrorError: No such broker, or several where none was named; a topic that no broker has.
        """
        self._client.start()
        try:
            names = self._names()
            self._check_topics(names)
        except BaseException:
            self._client.shutdown()
            raise
        self._mirrors = [
            BrokerMirror(
                self._client,
                name,
                CopyDirectory(self._directory / name, self._options),
                self._options,
                once=self._once,
                tls=self._tls,
            )
            for name in names
        ]
        for mirror in self._mirrors:
            mirror.start()

    def stop(self) -> None:
        """Ends it: what was read is written, and the stores are closed. Once more is nothing."""
        for mirror in self._mirrors:
            mirror.stop()
        self._client.shutdown()

    def status(self) -> list[MirrorStatus]:
        """How far each broker's mirror is."""
        return [mirror.status for mirror in self._mirrors]

    def wait(self, timeout: float) -> bool:
        """Waits until all mirrors ended, as with `once`, or for so many seconds; whether they did.

        Raises:
            RmqError: All ended, and this is why one of them could not go on. While others go on, its status says so.
        """
        share = timeout / max(len(self._mirrors), 1)
        # not a generator: each of them is waited for
        ended = [mirror.join(share) for mirror in self._mirrors]
        failures = [mirror.error for mirror in self._mirrors if mirror.error is not None]
        if failures and all(ended):
            raise failures[0]
        return all(ended)

    def is_caught_up(self) -> bool:
        """Whether all that the masters had, when they were last asked, is copied."""
        caught_up = (MirrorState.FOLLOWING, MirrorState.STOPPED)
        return all(status.state in caught_up for status in self.status())

    def _names(self) -> list[str]:
        known = [name for name, _ in self._client.masters()]
        absent = sorted(set(self._brokers) - set(known))
        listed = ", ".join(known)
        if absent:
            raise MirrorError(f"there is no master {', '.join(absent)}", next_step=f"the name server knows {listed}")
        names = list(dict.fromkeys(self._brokers)) or known
        if not self._brokers and not self._all and len(known) > 1:
            raise MirrorError(f"there are several masters: {listed}", next_step="--broker NAME, or --all-brokers")
        # a name server takes any name
        odd = [name for name in names if "/" in name or name in {"", ".", ".."}]
        if odd:
            raise MirrorError(f"{odd[0]!r} can be no directory", next_step="--broker NAME, of another one")
        return names

    def _check_topics(self, names: Sequence[str]) -> None:
        # a mirror that is there goes on, whatever became of its topics
        if not self._options.topics or any(exists(newest_copy(self._directory / name) / NAME) for name in names):
            return
        # those that wait have their topics once there are some
        absent = sorted(set(self._options.topics) - set(Topics(self._client).all()) - WAITING_TOPICS)
        if absent:
            raise MirrorError(
                f"no broker has the topic {', '.join(absent)}", next_step="rmqfast topic list has those that there are"
            )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
