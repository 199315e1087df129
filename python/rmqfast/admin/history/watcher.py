"""Watches a cluster, and keeps a history of it."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Self

from rmqfast.admin.admin_client import TIMEOUT, AdminClient
from rmqfast.admin.history.cluster_history import ClusterHistory, GroupLook, Offsets
from rmqfast.admin.history.looker import BrokersLook, Looker
from rmqfast.admin.history.turns import Turns
from rmqfast.admin.members import PATIENCE
from rmqfast.admin.snapshot import BrokerSnapshot
from rmqfast.arguments import Duration, integer, seconds, suggests_names
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import RmqError
from rmqfast.logs import logger_of
from rmqfast.paths import LocalPath, local_path
from rmqfast.pickling import not_picklable
from rmqfast.remoting.rate_limit import limited
from rmqfast.system import monotonic
from rmqfast.threads import Thread, new_event, new_thread

_log = limited(logger_of(__name__))
#: Requests a second for what brokers tell of one group at a time.
PER_SECOND = 20
#: Looks further apart than so many intervals are a gap, and at least so many seconds.
_GAP_INTERVALS, _GAP_SECONDS = 5, 10.0
#: Seconds between two removals of old rows.
_TRIM_SECONDS = 30.0


@suggests_names
@not_picklable("make one in each process")
class HistoryWatcher:
    """Looks at a cluster every `interval`, and keeps in a file what changes: offsets, members, subscriptions, queues.

    `admin.explain(message, history=path)` decides by it what brokers of RocketMQ do not tell. Each broker gets four
    requests a look, and groups and their members at most 20 a second: with more of them, each is looked at less often.
    What could not be looked at, as a broker that is down, is a gap of which the history says nothing; the log tells.

    Args:
        config: Name server, account and TLS of the cluster.
        path: The file; one that is there is continued.
        interval: Time between two looks.
        groups: Groups to watch. Default: all.
        max_age: Older rows are removed.
        max_rows: Number of rows; the oldest are removed first. The present state always stays.
        timeout: Timeout of a request in seconds; three times as long for slow requests.

    Raises:
        ArgumentError: A value is out of range.

    Example:
        >>> import tempfile, rmqfast
        >>> from rmqfast.admin.history import HistoryWatcher
        >>> with rmqfast.EmbeddedCluster() as cluster, tempfile.TemporaryDirectory() as directory:
        ...     config = rmqfast.ClientConfig(name_server=cluster.name_server)
        ...     with HistoryWatcher(config, f"{directory}/shop.history", interval=0.5) as watcher:
        ...         watcher.problems
        ()
    """

    def __init__(
        self,
        config: ClientConfig,
        path: LocalPath,
        *,
        interval: Duration = 1.0,
        groups: Collection[str] = (),
        max_age: Duration = 7 * 86_400,
        max_rows: int = 1_000_000,
        timeout: Duration = TIMEOUT,
    ) -> None:
        self._client = AdminClient(config, seconds("timeout", timeout))
        self._path = local_path(path, "path")
        self._interval = seconds("interval", interval)
        self._max_age, self._max_rows = seconds("max_age", max_age), integer("max_rows", max_rows, 1)
        self._looker = Looker(self._client, groups)
        self._history: ClusterHistory | None = None
        self._problems: tuple[str, ...] = ()
        self._turns = Turns(max(1, round(PER_SECOND * self._interval)))
        self._looked_at: float | None = None
        self._looks = 0
        self._trimmed_at = 0.0
        self._stopped = new_event()
        self._thread: Thread | None = None

    @property
    def looks(self) -> int:
        """The number of looks that are in the file."""
        return self._looks

    @property
    def problems(self) -> tuple[str, ...]:
        """The parts that the last look lacks, and why."""
        return self._problems

    def start(self) -> None:
        """Takes the first look after a second, which the clocks of the brokers need, and goes on in the background.

        Raises:
            RmqError: No name server answers.
            StoreBusyError: Another watcher writes the file.
            UnsupportedStoreError: The file is no history, or one of another version.
            CorruptError: The file is damaged.
            StoreIOError: The system does not let it be written.
        """
        self._history = ClusterHistory(self._path)
        try:
            self._client.start()
            self._looker.set_clocks()
            self._look(self._history)
        except BaseException:
            self.stop()
            raise
        self._thread = new_thread(self._run, self._history, name="rmqfast-watch")
        self._thread.start()

    def stop(self) -> None:
        """Ends the looks, and closes file and connections. May be called twice."""
        self._stopped.set()
        # Ends the requests that the other thread waits for.
        self._client.shutdown()
        if self._thread is not None:
            self._thread.join()
        if self._history is not None:
            self._history.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, history: ClusterHistory) -> None:
        while not self._stopped.wait(self._interval):
            try:
                self._look(history)
            except RmqError as error:
                if not self._stopped.is_set():
                    self._tell((str(error),))
            except Exception as error:  # noqa: BLE001  # the next look may succeed
                self._problems = (repr(error),)
                _log.exception("a look at the cluster failed")

    def _look(self, history: ClusterHistory) -> None:
        began = monotonic()
        look = self._looker.look_at_brokers()
        limit = max(_GAP_SECONDS, _GAP_INTERVALS * self._interval)
        is_late = self._looked_at is not None and began - self._looked_at > limit
        told = {name: self._looker.groups_of(broker) for name, broker in look.brokers.items()}
        # A group that was deleted may be made anew.
        gone = [(name, group) for name, group in history.watched if is_late or group not in told.get(name, ())]
        history.note_gaps(gone)
        self._looked_at = began
        places = self._places(look, began)
        looks, unknown = self._looker.look_at_groups(places, seconds=self._member_seconds)
        whole = self._with_offsets(history, looks)
        seen = {(each.broker_name, each.group) for each, _ in whole}
        history.note_gaps({(broker.broker_name, group) for broker, group in places} - seen)
        history.add(whole)
        members: dict[str, int] = {}
        for each in looks:
            # A broker that has no topic of the group may know no member of it.
            members[each.group] = max(members.get(each.group, 0), each.members)
        self._turns.note(members)
        self._trim(history, began)
        self._looks += 1
        self._tell((*look.problems, *unknown.values()))

    @property
    def _member_seconds(self) -> float:
        """Seconds that members have to answer: a silent one must not keep the next look waiting."""
        return min(self._client.timeout * PATIENCE, max(1.0, self._interval))

    def _places(self, look: BrokersLook, now: float) -> list[tuple[BrokerSnapshot, str]]:
        """Returns the groups whose turn it is, with their brokers."""
        brokers: dict[str, list[BrokerSnapshot]] = {}
        for broker in look.brokers.values():
            for group in self._looker.groups_of(broker):
                brokers.setdefault(group, []).append(broker)
        chosen = self._turns.next({group: len(each) for group, each in brokers.items()}, look.moved, now)
        return [(broker, group) for group in chosen for broker in brokers[group]]

    def _with_offsets(self, history: ClusterHistory, looks: list[GroupLook]) -> list[tuple[GroupLook, Offsets]]:
        """Returns the looks with the offsets of afterwards, as far as brokers told these."""
        are_changed = [history.is_changed(each) for each in looks]
        names = {each.broker_name for each, is_changed in zip(looks, are_changed, strict=True) if is_changed}
        after = self._looker.offsets_at(names)
        result: list[tuple[GroupLook, Offsets]] = []
        for each, is_changed in zip(looks, are_changed, strict=True):
            if not is_changed:
                result.append((each, each.before))
            elif each.broker_name in after:
                result.append((each, after[each.broker_name].get(each.group, {})))
        return result

    def _trim(self, history: ClusterHistory, now: float) -> None:
        if now - self._trimmed_at >= _TRIM_SECONDS or not self._looks:
            self._trimmed_at = now
            oldest_ms = int((time.time() - self._max_age) * 1000)
            while history.trim(most_rows=self._max_rows, oldest_ms=oldest_ms):
                pass

    def _tell(self, problems: tuple[str, ...]) -> None:
        before, self._problems = self._problems, problems
        for problem in problems:
            if problem not in before:
                _log.warning("a look at the cluster lacks a part: %s", problem)
