"""What a broker does now and then.

Source: `BrokerController.initialize`, `BrokerController.start`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rmqfast.broker.clients.client_processor import ClientProcessor
from rmqfast.broker.tables import BrokerTables
from rmqfast.broker.timer import Job, Timer

if TYPE_CHECKING:
    from rmqfast.acl import AccessValidator

__all__ = ["FIRST_DELIVERY", "timers_of"]

#: Seconds until delayed messages are looked at for the first time (`ScheduleMessageService.FIRST_DELAY_TIME`).
FIRST_DELIVERY = 1.0


def timers_of(
    tables: BrokerTables, clients: ClientProcessor, access: AccessValidator | None, is_stopped: Callable[[], bool]
) -> list[Timer]:
    """Starts the threads that do it; deliveries and checks of transactions take their time, and have one each."""
    housekeeping = [*_saves(tables), *_looks(tables, clients), *_figures(tables)]
    if access is not None:
        housekeeping.append(Job(access.reload_if_changed, 5, lambda: 5))
    return [
        Timer("rmqfast-housekeeping", housekeeping),
        Timer("rmqfast-notices", [Job(tables.notifier.run_once, 0.2, lambda: 0.2)]),
        Timer("rmqfast-delay", [Job(lambda: _deliver(tables, is_stopped), FIRST_DELIVERY, lambda: 0.05)]),
        Timer("rmqfast-transactions", [_check_transactions(tables)]),
    ]


def _saves(tables: BrokerTables) -> list[Job]:
    config = tables.config
    return [
        Job(tables.offsets.persist, 10, lambda: config().number("flushConsumerOffsetInterval") / 1000),
        Job(tables.schedule.persist, 10, lambda: config().number("flushDelayOffsetInterval") / 1000),
        Job(lambda: tables.filters.persist(now=tables.now()), 10, lambda: 10),
        Job(tables.metadata.flush, 1, lambda: 1),  # groups that came into being, and what the disk refused before
    ]


def _looks(tables: BrokerTables, clients: ClientProcessor) -> list[Job]:
    config = tables.config
    return [
        Job(clients.scan, 10, lambda: 10),
        Job(lambda: tables.locks.scan(tables.now()), 60, lambda: 60),
        Job(tables.data_plane.native.check_parked_pulls, 1, lambda: 5 if config().flag("longPollingEnable") else 1),
    ]


def _figures(tables: BrokerTables) -> list[Job]:
    return [
        Job(lambda: tables.stats.run_once(tables.now()), 10, lambda: 10),
        Job(lambda: tables.store_stats.run_once(tables.now()), 1, lambda: 1),
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
