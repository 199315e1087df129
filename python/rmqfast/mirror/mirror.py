"""`Mirror`: live copies of a cluster's brokers, each in a store directory of its own.

Source: `HAClient`, `SlaveSynchronize`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from rmqfast.admin.admin_client import TIMEOUT, AdminClient
from rmqfast.admin.topics import Topics
from rmqfast.arguments import suggests_names
from rmqfast.broker.topics.topic_manager import WAITING_TOPICS
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import MirrorError
from rmqfast.mirror.broker_mirror import BrokerMirror
from rmqfast.mirror.copy_directory import NAME, CopyDirectory
from rmqfast.mirror.options import MirrorOptions
from rmqfast.mirror.status import MirrorState, MirrorStatus
from rmqfast.paths import exists, local_path
from rmqfast.pickling import not_picklable
from rmqfast.store.replica import newest_copy


@suggests_names
@not_picklable("make one in each process")
class Mirror:
    """Copies the logs of a cluster's masters into store directories, and continues while the logs grow.

    Each broker gets a directory of its name below `directory`: a byte-for-byte copy of its store, with consume queues,
    index and configuration. With `topics` in the options, it is a store of these topics only. Any reader of stores can
    use the copy while it grows. The master does not count the mirror as a replica.

    Args:
        directory: Parent directory of the copies.
        name_server: `host:port`, several separated by `;`. Default: that of `config`, or the environment's
            `NAMESRV_ADDR`.
        brokers: Names of brokers. Default: the only broker of the cluster.
        all_brokers: Mirror all brokers that have a master now.
        options: Topics, start, retention and limits.
        once: Stop when each copy has everything its log had when the mirror caught up.
        config: Other settings of the connection: TLS, accounts.

    Raises:
        ClientError: No name server is configured, or none answers.
        MirrorError: A broker or a topic does not exist, or there are several brokers and no name is given.

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
        """Starts the mirrors, as `with` does.

        Raises:
            ClientError: The mirror was started before, or no name server is configured or answers.
            MirrorError: A broker or a topic does not exist, or there are several brokers and no name is given.
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
        """Writes all received bytes and closes the stores. May be called twice."""
        for mirror in self._mirrors:
            mirror.stop()
        self._client.shutdown()

    def status(self) -> list[MirrorStatus]:
        """Returns the status of each broker's mirror."""
        return [mirror.status for mirror in self._mirrors]

    def wait(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds until all mirrors have ended; returns whether they have. With `once` they do.

        Raises:
            RmqError: All mirrors ended, and one failed. While others still run, `status` reports a failure instead.
        """
        share = timeout / max(len(self._mirrors), 1)
        # A list, since a generator would stop at the first mirror that still runs.
        ended = [mirror.join(share) for mirror in self._mirrors]
        failures = [mirror.error for mirror in self._mirrors if mirror.error is not None]
        if failures and all(ended):
            raise failures[0]
        return all(ended)

    def is_caught_up(self) -> bool:
        """Whether the copies have all messages that the masters had when they were last asked."""
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
        # Name servers accept any name, also one with a slash.
        odd = [name for name in names if "/" in name or name in {"", ".", ".."}]
        if odd:
            raise MirrorError(f"{odd[0]!r} can be no directory", next_step="--broker NAME, of another one")
        return names

    def _check_topics(self, names: Sequence[str]) -> None:
        # An existing mirror continues, even if its topics were deleted.
        if not self._options.topics or any(exists(newest_copy(self._directory / name) / NAME) for name in names):
            return
        # Brokers create the topics of waiting messages only with the first such message.
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
