"""Whose log is followed: a master's, or that of a slave which a SYNC_MASTER waits for.

With a SYNC_MASTER of RocketMQ 4.x a connection to the HA port counts as a slave, whatever it reports, and sends wait
for one that is never done. A slave serves its log at a port of its own, and nobody waits for who reads there.

Source: `HAService.isSlaveOK`, `CommitLog.submitReplicaRequest`, `CommitLog.handleHA` (5.x).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.clusters import BrokerRow, Brokers, Clusters
from rmqfast.errors import MirrorError, ResponseError

__all__ = ["LogBounds", "Source", "find_source", "log_bounds"]

SYNC_MASTER = "SYNC_MASTER"
#: What a broker of 5.x that has its log elsewhere, or serves it in another protocol, says of itself.
OTHER_PROTOCOLS = {
    "enableControllerMode": "controller mode: its replicas speak another protocol",
    "enableDLegerCommitLog": "a DLedger commit log: its HA port is not open",
    "duplicationEnable": "duplicationEnable: its HA port is not open",
}
#: Just after its start a broker of 4.9.4 cannot tell of its log.
ASKED_AGAIN = 50


@dataclass(frozen=True)
class LogBounds:
    """Where a broker's log begins and ends, and since when the broker runs.

    Attributes:
        asked: When it was asked, by `time.monotonic`.
    """

    begin: int
    end: int
    boot: str
    asked: float


@dataclass(frozen=True)
class Source:
    """A log to follow.

    Attributes:
        broker_name: The broker.
        address: Where it answers requests, `host:port`.
        master_address: Where its master does.
        ha_addresses: Where it serves its log; they lead to the same port.
        config: Its configuration.
        is_slave: Whether it is a slave, whose log may be behind.
        waits_for_slaves: Whether sends wait for those who follow this log.
    """

    broker_name: str
    address: str
    master_address: str
    ha_addresses: tuple[str, ...]
    config: Mapping[str, str]
    is_slave: bool
    waits_for_slaves: bool

    @property
    def file_size(self) -> int:
        """Bytes of a file of the log."""
        return int(self.config["mappedFileSizeCommitLog"])


def find_source(client: AdminClient, broker_name: str, *, let_sends_time_out: bool = False) -> Source | None:
    """The log of a broker to follow; None while the name server knows no master of that name.

    Raises:
        MirrorError: Its log cannot be followed, or sends would wait for whoever does.
        RemotingError: Name server or broker do not answer.
    """
    rows = [row for row in Clusters(client).brokers() if row.broker_name == broker_name]
    master = next((row for row in rows if row.is_master), None)
    if master is None:
        return None
    source = _source(client, master, master)
    if not _counts_connections(source.config):
        return source
    for row in rows:
        if not row.is_master:
            return _source(client, row, master)
    if let_sends_time_out:
        return source
    raise MirrorError(
        f"{broker_name} is a SYNC_MASTER without a slave: a mirror would count as one, and each send would wait for "
        f"slaveTimeout, {source.config.get('slaveTimeout', '3000')} ms, and end as FLUSH_SLAVE_TIMEOUT",
        next_step="start a slave, whose log is followed then; or --let-sends-time-out",
    )


def log_bounds(client: AdminClient, address: str) -> LogBounds:
    """Where a broker's log begins and ends.

    Raises:
        RemotingError: It does not answer.
    """
    for _ in range(ASKED_AGAIN):
        asked = time.monotonic()
        try:
            status = Brokers(client).status(address)
        except ResponseError as error:
            failure = error
            time.sleep(0.2)
            continue
        # an empty log of Java's begins at -1
        begin = max(int(status["commitLogMinOffset"]), 0)
        return LogBounds(begin, int(status["commitLogMaxOffset"]), status.get("bootTimestamp", ""), asked)
    raise failure


def _source(client: AdminClient, row: BrokerRow, master: BrokerRow) -> Source:
    config = Brokers(client).config(row.address)
    for key, reason in OTHER_PROTOCOLS.items():
        if config.get(key) == "true":
            raise MirrorError(
                f"{row.broker_name} at {row.address} has {reason}", next_step="read its topics by pulls: read_topic"
            )
    port = config["haListenPort"]
    hosts = [host for host in (config.get("brokerIP2"), row.address.rpartition(":")[0]) if host]
    return Source(
        broker_name=row.broker_name,
        address=row.address,
        master_address=master.address,
        ha_addresses=tuple(dict.fromkeys(f"{host}:{port}" for host in hosts)),
        config=config,
        is_slave=not row.is_master,
        waits_for_slaves=row.is_master and config.get("brokerRole") == SYNC_MASTER,
    )


def _counts_connections(config: Mapping[str, str]) -> bool:
    """Whether a mere connection has sends wait: 5.x counts reports."""
    return config.get("brokerRole") == SYNC_MASTER and "inSyncReplicas" not in config
