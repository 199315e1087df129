"""Runs a broker's periodic jobs: saves, scans, figures, deliveries, transaction checks.

Source: `BrokerController.initialize`, `BrokerController.start`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqfast.broker.clients.client_processor import ClientProcessor
from rmqfast.broker.tables import BrokerTables
from rmqfast.logs import logger_of
from rmqfast.system import monotonic
from rmqfast.threads import is_current, new_event, new_thread

if TYPE_CHECKING:
    from rmqfast.acl import AccessValidator

__all__ = ["FIRST_DELIVERY", "Timer", "timers_of"]

_log = logger_of(__name__)

#: Seconds until delayed messages are looked at for the first time (`ScheduleMessageService.FIRST_DELAY_TIME`).
FIRST_DELIVERY = 1.0


def timers_of(
    tables: BrokerTables, clients: ClientProcessor, access: AccessValidator | None, is_stopped: Callable[[], bool]
) -> list[Timer]:
    """Starts the threads that do it; deliveries and checks of transactions take their time, and have one each."""
    housekeeping = [*_saves(tables), *_scans(tables, clients), *_figures(tables)]
    if access is not None:
        housekeeping.append(Job(access.reload_if_changed, 5, lambda: 5))
    timers = [
        Timer("rmqfast-housekeeping", housekeeping),
        Timer("rmqfast-notices", [Job(tables.notifier.run_once, 0.2, lambda: 0.2)]),
    ]
    if tables.config().is_slave:
        # what is due, and who has to end a transaction, is its master's affair
        return timers
    return [
        *timers,
        Timer("rmqfast-delay", [Job(lambda: _deliver(tables, is_stopped), FIRST_DELIVERY, lambda: 0.05)]),
        Timer("rmqfast-transactions", [_check_transactions(tables)]),
    ]


def _saves(tables: BrokerTables) -> list[Job]:
    config = tables.config
    return [
        # ten seconds first, as in `BrokerController`
        Job(tables.offsets.persist, 10, lambda: config().number("flushConsumerOffsetInterval") / 1000),
        Job(tables.schedule.persist, 10, lambda: config().number("flushDelayOffsetInterval") / 1000),
        Job(lambda: tables.filters.persist(now=tables.now()), 10, lambda: 10),
        Job(tables.metadata.flush, 1, lambda: 1),  # groups that came into being, and what the disk refused before
    ]


def _scans(tables: BrokerTables, clients: ClientProcessor) -> list[Job]:
    config = tables.config
    return [
        # as often as `ClientHousekeepingService`: every 10 seconds, for 120 seconds of silence
        Job(clients.scan, 10, lambda: 10),
        Job(lambda: tables.locks.scan(tables.now()), 60, lambda: 60),
        Job(tables.data_plane.check_parked_pulls, 1, lambda: 5 if config().flag("longPollingEnable") else 1),
    ]


def _figures(tables: BrokerTables) -> list[Job]:
    return [
        Job(lambda: tables.stats.run_once(tables.now()), 10, lambda: 10),
        Job(lambda: tables.store_stats.run_once(tables.now()), 1, lambda: 1),
        # the text stands in the refusal of a send: "the broker's disk is full [CL: 0.93 ...]"
        Job(tables.note_disk_usage, 0, lambda: 1),
        Job(tables.integrity.run_once, 0, lambda: 1),
    ]


def _deliver(tables: BrokerTables, is_stopped: Callable[[], bool]) -> None:
    """Delivers what is due; where a level has more than one look takes, it goes on at once."""
    while not is_stopped() and tables.schedule.run_once(tables.now()):
        pass


def _check_transactions(tables: BrokerTables) -> Job:
    def seconds() -> float:
        return tables.config().number("transactionCheckInterval") / 1000

    return Job(lambda: tables.transactions.run_once(tables.now()), seconds(), seconds)


@dataclass(frozen=True, slots=True)
class Job:
    """Work that is done again and again.

    Attributes:
        work: Does it once.
        first: Seconds until the first time.
        interval: Seconds from its end to the next time; asked each time, as it may be configured anew.
    """

    work: Callable[[], object]
    first: float
    interval: Callable[[], float]


class Timer:
    """One thread that does some jobs, each in its time; one that fails is logged, and done again."""

    def __init__(self, name: str, jobs: Sequence[Job]) -> None:
        start = monotonic()
        self._due = [start + job.first for job in jobs]
        self._jobs = jobs
        self._stopped = new_event()
        self._thread = new_thread(self._run, name=name)
        self._thread.start()

    def stop(self) -> None:
        """Does no job any more, and waits for the one that is done now: two seconds at most."""
        self._stopped.set()
        # a job may stop the broker; it cannot wait for itself
        if not is_current(self._thread):
            self._thread.join(timeout=2)

    def _run(self) -> None:
        # by the monotonic clock: a time of day that is set must not make jobs run late or without end
        while not self._stopped.wait(max(0.0, min(self._due) - monotonic())):
            for number, job in enumerate(self._jobs):
                if self._due[number] <= monotonic() and not self._stopped.is_set():
                    self._do(job)
                    self._due[number] = monotonic() + job.interval()

    @staticmethod
    def _do(job: Job) -> None:
        try:
            job.work()
        except Exception:  # noqa: BLE001 - the next job, and the next time, are not to suffer
            _log.exception("%r failed", job.work)
