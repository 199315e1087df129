"""Chooses the log to follow: a master's log, or a slave's if sends to the master would wait for the mirror.

A SYNC_MASTER of RocketMQ 4.x counts each connection to its HA port as a slave, and lets sends wait for a slave that
never catches up. A slave serves its log on its own port, and no send waits for its readers.

Source: `HAService.isSlaveOK`, `CommitLog.submitReplicaRequest`, `CommitLog.handleHA` (5.x).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.clusters import BrokerRow, Brokers, Clusters
from rmqfast.errors import ArgumentError, MirrorError, ResponseError
from rmqfast.replication import ServedLog
from rmqfast.system import monotonic
from rmqfast.threads import sleep

#: Attempts, 0.2 seconds apart, since a broker of 4.9.4 cannot report its log just after its start.
ASKED_AGAIN = 50


@dataclass(frozen=True)
class LogBounds:
    """The begin and the end of a broker's log.

    Attributes:
        boot: Start time of the broker.
        asked: Time of the request, by `time.monotonic`.
        listed_to: Position up to which the broker's queues list the log.
    """

    begin: int
    end: int
    boot: str
    asked: float
    listed_to: int = 0


@dataclass(frozen=True)
class Source:
    """A log that can be followed.

    Attributes:
        address: Address of the broker for requests, `host:port`.
        master_address: Address of its master.
        log: The HA port.
        config: The broker's configuration.
        is_slave: Whether it is a slave's log, which may lag behind the master's.
    """

    broker_name: str
    address: str
    master_address: str
    log: ServedLog
    config: Mapping[str, str]
    is_slave: bool

    @property
    def waits_for_slaves(self) -> bool:
        """Whether sends to this broker wait for followers of its log."""
        return not self.is_slave and self.log.waited_for != "nobody"


def find_source(
    client: AdminClient, broker_name: str, *, let_sends_time_out: bool = False, as_slave: bool = False
) -> Source | None:
    """Returns the log to follow. `None` as long as the name server knows no master of this name.

    A real slave always follows its master, since sends shall wait for the slave.

    Raises:
        MirrorError: The log cannot be followed, or sends would wait for the follower.
        RemotingError: Name server or broker do not answer.
    """
    rows = [row for row in Clusters(client).brokers() if row.broker_name == broker_name]
    master = next((row for row in rows if row.is_master), None)
    if master is None:
        return None
    source = _source(client, master, master)
    # 5.x counts reported positions, and a mirror reports none.
    if as_slave or source.log.waited_for != "connections":
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
    for _ in range(ASKED_AGAIN):
        asked = monotonic()
        try:
            status = Brokers(client).status(address)
        except ResponseError as error:
            failure = error
            sleep(0.2)
            continue
        # A Java broker reports -1 as the begin of an empty log.
        begin = max(int(status["commitLogMinOffset"]), 0)
        end, behind = int(status["commitLogMaxOffset"]), int(status.get("dispatchBehindBytes", "0"))
        return LogBounds(begin, end, status.get("bootTimestamp", ""), asked, listed_to=end - behind)
    raise failure


def _source(client: AdminClient, row: BrokerRow, master: BrokerRow) -> Source:
    config = Brokers(client).config(row.address)
    try:
        served = ServedLog.of_config(config, row.address)
    except ArgumentError as error:
        raise MirrorError(
            f"{row.broker_name} at {row.address} has {error}", next_step="read its topics by pulls: read_topic"
        ) from error
    return Source(
        broker_name=row.broker_name,
        address=row.address,
        master_address=master.address,
        log=served,
        config=config,
        is_slave=not row.is_master,
    )
