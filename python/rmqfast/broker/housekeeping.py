"""Runs the periodic jobs of a broker: saves, scans, statistics, deliveries and transaction checks.

Source: RocketMQ's `BrokerController`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqfast.broker.clients.client_processor import ClientProcessor
from rmqfast.broker.state import BrokerState
from rmqfast.logs import logger_of
from rmqfast.system import monotonic
from rmqfast.threads import is_current, new_event, new_thread

if TYPE_CHECKING:
    from rmqfast.acl import AccessValidator

_log = logger_of(__name__)

#: Seconds until the first delivery of delayed messages (`ScheduleMessageService.FIRST_DELAY_TIME`).
FIRST_DELIVERY = 1.0


def timers_of(
    state: BrokerState, clients: ClientProcessor, access: AccessValidator | None, is_stopped: Callable[[], bool]
) -> list[Timer]:
    """Starts and returns the threads of the periodic jobs. Deliveries and transaction checks have their own threads."""
    housekeeping = [*_saves(state), *_scans(state, clients), *_figures(state)]
    if access is not None:
        housekeeping.append(Job(access.reload_if_changed, 5, lambda: 5))
    timers = [
        Timer("rmqfast-housekeeping", housekeeping),
        Timer("rmqfast-notices", [Job(state.notifier.run_once, 0.2, lambda: 0.2)]),
    ]
    if state.config().is_slave:
        # The master delivers delayed messages and checks transactions.
        return timers
    return [
        *timers,
        Timer("rmqfast-delay", [Job(lambda: _deliver(state, is_stopped), FIRST_DELIVERY, lambda: 0.05)]),
        Timer("rmqfast-transactions", [_check_transactions(state)]),
    ]


def _saves(state: BrokerState) -> list[Job]:
    config = state.config
    return [
        # First after ten seconds, as in `BrokerController`.
        Job(state.offsets.persist, 10, lambda: config().number("flushConsumerOffsetInterval") / 1000),
        *([] if state.ledger is None else [Job(state.ledger.save, 5, lambda: 5)]),
        Job(state.schedule.persist, 10, lambda: config().number("flushDelayOffsetInterval") / 1000),
        Job(lambda: state.filters.persist(now=state.now()), 10, lambda: 10),
        Job(state.metadata.flush, 1, lambda: 1),  # new groups, and changes that the disk refused before
    ]


def _scans(state: BrokerState, clients: ClientProcessor) -> list[Job]:
    config = state.config
    return [
        # Every 10 seconds, as in `ClientHousekeepingService`, for 120 seconds of silence.
        Job(clients.scan, 10, lambda: 10),
        Job(lambda: state.locks.scan(state.now()), 60, lambda: 60),
        Job(state.data_plane.check_parked_pulls, 1, lambda: 5 if config().flag("longPollingEnable") else 1),
    ]


def _figures(state: BrokerState) -> list[Job]:
    return [
        Job(lambda: state.stats.run_once(state.now()), 10, lambda: 10),
        Job(lambda: state.store_stats.run_once(state.now()), 1, lambda: 1),
        # A send refused on a full disk quotes this text: "the broker's disk is full [CL: 0.93 ...]".
        Job(state.note_disk_usage, 0, lambda: 1),
        Job(state.integrity.run_once, 0, lambda: 1),
    ]


def _deliver(state: BrokerState, is_stopped: Callable[[], bool]) -> None:
    """Delivers due messages, and continues as long as batches are full."""
    # `run_once` delivers at most one batch per level.
    while not is_stopped() and state.schedule.run_once(state.now()):
        pass


def _check_transactions(state: BrokerState) -> Job:
    def seconds() -> float:
        return state.config().number("transactionCheckInterval") / 1000

    return Job(lambda: state.transactions.run_once(state.now()), seconds(), seconds)


@dataclass(frozen=True, slots=True)
class Job:
    """A job that runs at regular intervals.

    `first` is the number of seconds until the first run, `interval` returns the seconds from the end of a run to the
    next one; called each time, since it may be configured.
    """

    work: Callable[[], object]
    first: float
    interval: Callable[[], float]


class Timer:
    """A thread that runs periodic jobs. A job that fails is logged and runs again at its next time."""

    def __init__(self, name: str, jobs: Sequence[Job]) -> None:
        start = monotonic()
        self._due = [start + job.first for job in jobs]
        self._jobs = jobs
        self._stopped = new_event()
        self._thread = new_thread(self._run, name=name)
        self._thread.start()

    def stop(self) -> None:
        """Stops after the current job, but waits for it at most two seconds."""
        self._stopped.set()
        # A job may stop the broker, and cannot wait for its own thread.
        if not is_current(self._thread):
            self._thread.join(timeout=2)

    def _run(self) -> None:
        # By the monotonic clock, so that a changed system time neither delays jobs nor makes them run without pause.
        while not self._stopped.wait(max(0.0, min(self._due) - monotonic())):
            for number, job in enumerate(self._jobs):
                if self._due[number] <= monotonic() and not self._stopped.is_set():
                    self._do(job)
                    self._due[number] = monotonic() + job.interval()

    @staticmethod
    def _do(job: Job) -> None:
        try:
            job.work()
        except Exception:  # noqa: BLE001  # a failed job must not keep others, or its next run, from running
            _log.exception("%r failed", job.work)
