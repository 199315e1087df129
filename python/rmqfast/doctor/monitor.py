"""Watches a cluster, and raises and clears alarms: to the log, a webhook and a callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from rmqfast.admin import Snapshot
from rmqfast.admin.admin_client import DLQ_PREFIX, RETRY_PREFIX, TIMEOUT, AdminClient
from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client.instance import ClientConfig
from rmqfast.doctor.alarm import Alarm, AlarmBoard, AlarmChange
from rmqfast.doctor.alarm_rules import AlarmHistory, AlarmRules
from rmqfast.doctor.examination import Examination
from rmqfast.doctor.examiner import Examiner
from rmqfast.doctor.webhook import Webhook
from rmqfast.errors import RmqError
from rmqfast.logs import logger_of
from rmqfast.pickling import not_picklable
from rmqfast.remoting.rate_limit import limited
from rmqfast.system import monotonic, return_free_memory
from rmqfast.threads import Thread, new_event, new_thread

_log = limited(logger_of(__name__))
_changes_log = logger_of("rmqfast.alarms")
#: Requests per second for what brokers tell of one group at a time.
PER_SECOND = 20


@suggests_names
@not_picklable("make one in each process")
class AlarmMonitor:
    """Looks at a cluster every `interval`, and tells which alarms are raised and cleared.

    The logger `rmqfast.alarms` gets each change. A look that lacks a part clears no alarm. Brokers tell dead letters of
    one group at a time only, those of RocketMQ also members and unread times: in a cluster with many groups, these are
    asked so seldom that it makes 20 requests a second.

    Args:
        config: Name server, account and TLS of the cluster.
        rules: Limits beyond which alarms are raised.
        interval: Time between two looks.
        webhook: URL to which changes are posted as JSON, each until it is taken.
        on_change: Called with each change, by the thread that looks.
        on_look: Called after each look with its facts, by the same thread.
        timeout: Timeout of a request in seconds; three times as long for slow requests.

    Raises:
        ArgumentError: The webhook is no URL of `http` or `https`.

    Example:
        >>> import rmqfast
        >>> from rmqfast.doctor import AlarmMonitor
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     with AlarmMonitor(rmqfast.ClientConfig(name_server=cluster.name_server)) as monitor:
        ...         names = {alarm.finding.name for alarm in monitor.alarms}
        >>> names <= {"disk-full"}
        True
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        rules: AlarmRules | None = None,
        interval: Duration = 10.0,
        webhook: str | None = None,
        on_change: Callable[[AlarmChange], object] = lambda _: None,
        on_look: Callable[[Examination], object] = lambda _: None,
        timeout: Duration = TIMEOUT,
    ) -> None:
        self._client = AdminClient(config, seconds("timeout", timeout))
        self._interval = seconds("interval", interval)
        self._examiner = Examiner(self._client, config.name_servers)
        self._history, self._board = AlarmHistory(rules or AlarmRules()), AlarmBoard()
        self._on_change, self._on_look = on_change, on_look
        self._webhook = None if webhook is None else Webhook(webhook, cluster=str(config.name_server))
        self._alarms: tuple[Alarm, ...] = ()
        self._problems: tuple[str, ...] = ()
        self._looked_at = 0.0
        self._whole_at = 0.0
        self._stopped = new_event()
        self._first_look = new_event()
        self._first_error: BaseException | None = None
        self._thread: Thread | None = None

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms that last, oldest first."""
        return self._alarms

    @property
    def age(self) -> float:
        """Seconds since the last look."""
        return monotonic() - self._looked_at

    @property
    def problems(self) -> tuple[str, ...]:
        """The parts of the cluster that the last look lacked, and why."""
        return self._problems

    def start(self) -> None:
        """Takes the first look, and goes on in the background. Raises `RmqError` if no name server answers."""
        self._client.start()
        try:
            if self._webhook is not None:
                self._webhook.start()
            # All looks are on one thread: what a look leaves free, the memory of that thread, the next one takes.
            self._thread = new_thread(self._run, name="rmqfast-alarms")
            self._thread.start()
            self._first_look.wait()
        except BaseException:
            self.stop()
            raise
        if self._first_error is not None:
            self.stop()
            raise self._first_error

    def stop(self) -> None:
        """Ends the looks, posts what waits once more, and closes the connections. May be called twice."""
        self._stopped.set()
        # Ends the requests that the other thread waits for.
        self._client.shutdown()
        if self._thread is not None:
            self._thread.join()
        if self._webhook is not None:
            self._webhook.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._look_once()
        except BaseException as error:  # noqa: BLE001  # `start` raises it
            self._first_error = error
            return
        finally:
            self._first_look.set()
        while not self._stopped.wait(self._interval):
            try:
                self._look_once()
            except RmqError as error:
                if not self._stopped.is_set():
                    self._problems = (str(error),)
                    _log.warning("the cluster cannot be looked at now, alarms stay as they are: %s", error)
            except Exception as error:  # noqa: BLE001  # the next look may succeed
                self._problems = (repr(error),)
                _log.exception("a look at the cluster failed, alarms stay as they are")

    def _look_once(self) -> None:
        self._look()
        # A look at a large cluster takes many times the memory of what stays of it.
        return_free_memory()

    def _look(self) -> None:
        began = monotonic()
        is_whole = began >= self._whole_at
        examination = self._examiner.look(is_whole=is_whole)
        self._looked_at = began
        if is_whole:
            self._whole_at = began + _single_questions(examination.snapshot) / PER_SECOND
        self._problems = tuple(self._examiner.unknown)
        if self._problems:
            _log.warning("a look at the cluster lacks a part: %s", "; ".join(self._problems))
        self._update(examination, is_complete=is_whole and not self._problems and not examination.unreachable)
        self._on_look(examination)

    def _update(self, examination: Examination, *, is_complete: bool) -> None:
        findings = self._history.findings(examination)
        changes = self._board.update(findings, now=examination.now, is_complete=is_complete)
        self._alarms = self._board.alarms
        if self._webhook is not None:
            self._webhook.post(changes)
        for change in changes:
            _changes_log.warning("%s", change)
            try:
                self._on_change(change)
            except Exception:  # noqa: BLE001  # it must not keep the others from being told
                _log.exception("on_change failed for an alarm: %s", change)


def _single_questions(snapshot: Snapshot) -> int:
    """Returns how many questions about single groups and members a whole look asks.

    Our brokers tell all at once, except dead letters.
    """
    count = 0
    for broker in snapshot.brokers:
        count += sum(topic.startswith(DLQ_PREFIX) for topic in broker.topics or ())
        if broker.stats is None:
            count += sum(topic.startswith(RETRY_PREFIX) for topic in broker.topics or ())
            count += sum(len(known.client_ids) for known in (broker.consumers or {}).values())
            count += sum(stats.diff_total > 0 for topics in (broker.progress or {}).values() for stats in topics)
    return count
