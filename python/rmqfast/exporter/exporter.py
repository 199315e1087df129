"""Serves the metrics of a cluster, for Prometheus, and asks its brokers for them in the background.

Source: RocketMQ Exporter's `RMQMetricsService`, `MetricsCollectTask`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from rmqfast.admin import BrokerRow, Snapshot
from rmqfast.admin.admin_client import TIMEOUT, AdminClient
from rmqfast.admin.clusters import Brokers, Clusters, log_end_of
from rmqfast.admin.snapshot_taker import SnapshotTaker
from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import RemotingError, RmqError
from rmqfast.exporter.cluster_metrics import Cluster
from rmqfast.exporter.single_questions import SingleQuestions
from rmqfast.logs import logger_of
from rmqfast.metrics import Family, Kind, Sample, write_text
from rmqfast.metrics.server import MetricsServer
from rmqfast.pickling import not_picklable
from rmqfast.remoting.rate_limit import limited
from rmqfast.system import monotonic
from rmqfast.threads import Thread, new_event, new_thread

_log = limited(logger_of(__name__))
#: Port of RocketMQ's exporter.
PORT = 5557
#: Questions per second and broker, besides the five of a snapshot.
PER_SECOND = 10
_LEAST_STALE = 60.0


@suggests_names
@not_picklable("make one in each process")
class Exporter:
    """Metrics of a cluster at `/metrics`, under the names of RocketMQ's exporter and under `rmqfast_`.

    A snapshot is taken every `interval`, by five requests to each broker. What RocketMQ's brokers tell only one topic,
    group or member at a time is asked in turns, ten questions per second and broker, so that those figures are older in
    large clusters; `rmqfast_exporter_round_seconds` tells how old.

    Args:
        config: Name server, account and TLS of the cluster.
        port: Port to listen at; 0 chooses a free one.
        host: Address to listen at. Default: only this machine may ask.
        interval: Time between two snapshots.
        stale_after: Age of a snapshot from which on its metrics are no longer told, as if the cluster were gone.
            Default: four intervals, and at least a minute.
        timeout: Timeout of a request in seconds; three times as long for a snapshot.

    Raises:
        RemotingError: The port is not available.

    Example:
        >>> import rmqfast
        >>> from urllib.request import urlopen
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     config = rmqfast.ClientConfig(name_server=cluster.name_server)
        ...     with Exporter(config, port=0) as exporter, urlopen(f"http://{exporter.address}/metrics") as text:
        ...         b"rocketmq_broker_tps" in text.read()
        True
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        port: int = PORT,
        host: str = "127.0.0.1",
        interval: Duration = 15.0,
        stale_after: Duration | None = None,
        timeout: Duration = TIMEOUT,
    ) -> None:
        self._client = AdminClient(config, seconds("timeout", timeout))
        self._port, self._host = port, host
        self._interval = seconds("interval", interval)
        longest = max(4 * self._interval, _LEAST_STALE)
        self._stale_after = longest if stale_after is None else seconds("stale_after", stale_after)
        self._single = SingleQuestions(self._client, per_second=PER_SECOND)
        self._snapshot: Snapshot | None = None
        self._slave_ends: dict[BrokerRow, int] = {}
        #: What is served: a value that no thread changes.
        self._cluster: Cluster | None = None
        self._snapshot_seconds = 0.0
        self._taken_at = 0.0
        self._failures = 0
        self._stopped = new_event()
        self._server: MetricsServer | None = None
        self._thread: Thread | None = None

    def start(self) -> None:
        """Takes the first snapshot, and serves. Raises `RmqError` if the name server does not answer."""
        self._client.start()
        try:
            self._publish(self._take_snapshot())
            self._server = MetricsServer(self.text, port=self._port, host=self._host)
        except BaseException:
            self._client.shutdown()
            raise
        self._thread = new_thread(self._run, name="rmqfast-exporter")
        self._thread.start()

    @property
    def address(self) -> str:
        """Address of the metrics, `host:port`. Empty before `start`."""
        return "" if self._server is None else self._server.address

    def stop(self) -> None:
        """Stops serving, and closes the connections to the cluster. May be called twice."""
        self._stopped.set()
        if self._server is not None:
            self._server.close()
        # Ends the requests that the other thread waits for.
        self._client.shutdown()
        if self._thread is not None:
            self._thread.join()

    def text(self) -> str:
        """Returns the newest metrics as text for Prometheus."""
        # What is old is no state of the cluster: nobody must take it for one.
        cluster = None if self._age > self._stale_after else self._cluster
        families = [] if cluster is None else cluster.families(time.time_ns() // 1_000_000)
        return write_text([*families, *self._own_families()])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _age(self) -> float:
        return monotonic() - self._taken_at

    def _publish(self, snapshot: Snapshot) -> None:
        self._cluster = Cluster(
            snapshot=self._single.complete(snapshot),
            members=dict(self._single.members),
            slave_ends=dict(self._slave_ends),
            reserved_hours=self._single.reserved_hours(),
        )

    def _own_families(self) -> list[Family]:
        single = self._single
        rounds = [Sample((address,), spent) for address, spent in list(single.round_seconds.items())]
        return [
            _family("snapshot_seconds", Kind.GAUGE, "Time of the last snapshot.", self._snapshot_seconds),
            _family("snapshot_age_seconds", Kind.GAUGE, "Age of the last snapshot.", self._age),
            _family("failures_total", Kind.COUNTER, "Failed snapshots, and those that lack a part.", self._failures),
            _family("questions_total", Kind.COUNTER, "Requests besides snapshots.", single.asked),
            _family("questions_failed_total", Kind.COUNTER, "Those without an answer.", single.failed),
            Family(
                "rmqfast_exporter_round_seconds",
                Kind.GAUGE,
                "Time of a round through everything that a broker tells one at a time: the age of these figures.",
                ("address",),
                rounds,
            ),
        ]

    def _run(self) -> None:
        due = monotonic() + self._interval
        while not self._stopped.wait(1.0):
            if monotonic() >= due:
                self._attempt(self._take_snapshot)
                due = monotonic() + self._interval
            self._attempt(self._ask_some)

    def _ask_some(self) -> None:
        if self._snapshot is not None:
            self._single.ask_some(self._snapshot)
            self._publish(self._snapshot)

    def _attempt(self, work: Callable[[], object]) -> None:
        try:
            work()
        except RmqError as error:
            if self._stopped.is_set():
                return
            self._failures += 1
            _log.warning("the cluster does not tell its metrics now: %s", error)
        except Exception:  # noqa: BLE001  # the next attempt may succeed
            self._failures += 1
            _log.exception("the metrics of the cluster could not be read")

    def _take_snapshot(self) -> Snapshot:
        began = monotonic()
        snapshot = SnapshotTaker(self._client).snapshot()
        self._snapshot_seconds, self._taken_at = monotonic() - began, began
        if snapshot.problems:
            self._failures += 1
            _log.warning("%s", "; ".join(snapshot.problems))
        self._slave_ends = self._ends_of_slaves()
        self._snapshot = snapshot
        return snapshot

    def _ends_of_slaves(self) -> dict[BrokerRow, int]:
        slaves = [row for row in Clusters(self._client).brokers() if not row.is_master]
        ends: dict[BrokerRow, int] = {}
        for slave, status in zip(slaves, Brokers(self._client).statuses(slaves), strict=True):
            if isinstance(status, RemotingError):
                self._failures += 1
                _log.warning(
                    "the slave of %s at %s does not tell its status: %s", slave.broker_name, slave.address, status
                )
            elif (end := log_end_of(status)) is not None:
                ends[slave] = end
        return ends


def _family(name: str, kind: Kind, text: str, value: float) -> Family:
    return Family(f"rmqfast_exporter_{name}", kind, text, (), [Sample((), value)])
