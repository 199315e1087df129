"""Passes the answers to pulls on to the process queues of a push consumer.

Source: RocketMQ's `PullMessageService`, `DefaultMQPushConsumerImpl`, `PullCallback`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rmqfast._native import Fetched, MessageView, Puller
from rmqfast.client.instance import ClientConfig
from rmqfast.client.pulling.illegal_offset import has_illegal_offset
from rmqfast.client.pulling.pulled_queues import PulledQueue, PulledQueues
from rmqfast.client.pulling.single_pulls import PullSysFlag
from rmqfast.client.push.counters import ConsumeCounters
from rmqfast.client.push.options import PushOptions
from rmqfast.client.push.process_queue import ProcessQueue
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.system import monotonic
from rmqfast.threads import Thread, is_current, new_thread

_log = logger_of(__name__)

#: Seconds that one poll waits for answers, and the maximum number of answers it takes.
_WAIT, _MOST = 60.0, 64
#: Maximum pulls in flight per broker, not counting long polls at the end of queues.
_IN_FLIGHT = 8
#: As in Java, there is no limit over all queues.
_NO_LIMIT = (1 << 63) - 1


class Receiver(Protocol):
    """The consumer that gets the pulled messages."""

    def messages(self, queue: MessageQueue, fetched: Fetched) -> list[MessageView]: ...

    def consume(
        self, messages: list[MessageView], size: int, process_queue: ProcessQueue, queue: MessageQueue
    ) -> None: ...

    def correct_offset(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None: ...

    def give_up(self, pulled: PulledQueue[ProcessQueue], fetched: Fetched) -> None: ...


class PullMessageService:
    """Takes answers on a thread, and tells the native puller which messages were consumed."""

    def __init__(
        self,
        receiver: Receiver,
        queues: PulledQueues[ProcessQueue],
        counters: ConsumeCounters,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._receiver, self._queues, self._counters, self._clock = receiver, queues, counters, clock
        self._thread: Thread | None = None

    def start(self, name: str) -> None:
        self._thread = new_thread(self._run, name=f"rmqfast-pull-{name}")
        self._thread.start()

    def join(self, timeout: float) -> None:
        if self._thread is not None and not is_current(self._thread):
            self._thread.join(timeout)

    def on_consumed(self, process_queue: ProcessQueue) -> None:
        if (freed := process_queue.take_freed()) is not None:
            self._queues.on_consumed(process_queue.epoch, *freed)

    def take(self, pulled: PulledQueue[ProcessQueue], fetched: Fetched) -> None:
        queue, process_queue = pulled.queue, pulled.process_queue
        if process_queue.is_dropped:
            self._queues.stop([queue])
            return
        process_queue.epoch, process_queue.last_pull_timestamp = fetched.epoch, self._clock()
        if has_illegal_offset(fetched):
            self._receiver.give_up(pulled, fetched)
            return
        if fetched.status != "FOUND":
            # otherwise the unconsumed messages determine the group's offset
            if process_queue.count == 0:
                self._receiver.correct_offset(queue, process_queue, fetched.next_begin_offset)
                self._queues.on_consumed(fetched.epoch, 0, 0, fetched.next_begin_offset)
            return
        messages = self._receiver.messages(queue, fetched)
        dropped = len(fetched) - len(messages)
        self._counters.on_pull(queue.topic, len(messages), fetched.elapsed, dropped=dropped)
        # messages of a released queue no longer count
        process_queue.free(dropped, 0)
        self._receiver.consume(messages, fetched.size, process_queue, queue)
        self.on_consumed(process_queue)

    def _run(self) -> None:
        while not self._queues.is_closed:
            for pulled, fetched in self._queues.take(_WAIT, max_items=_MOST) or ():
                try:
                    self.take(pulled, fetched)
                except Exception:  # noqa: BLE001 - the other queues must continue
                    _log.exception("what a pull of %s has brought could not be taken", pulled.queue)


def make_puller(group: str, client_id: str, options: PushOptions, config: ClientConfig, *, in_order: bool) -> Puller:
    # A pull and the offset stored when a queue is released use different connections. If the broker reads the pull
    # later, the group's offset returns to that of the pull, and orderly messages would be consumed twice.
    commits = options.is_clustering and not in_order
    return Puller(
        consumer_group=group,
        depth=_IN_FLIGHT,
        batch=options.pull_batch_size,
        suspend=options.pull_suspend_millis / 1000,
        timeout=options.pull_timeout_millis / 1000,
        connect_timeout=config.connect_timeout,
        retry=options.pull_time_delay_millis_when_exception / 1000,
        interval=options.pull_interval / 1000,
        of_queue=(options.pull_threshold_for_queue, options.pull_threshold_size_for_queue << 20),
        in_all=(_NO_LIMIT, _NO_LIMIT),
        max_span=_NO_LIMIT if in_order else options.consume_concurrently_max_span,
        sys_flag=int(PullSysFlag.SUBSCRIPTION) if options.post_subscription_when_pull else 0,
        commits_offsets=commits,
        counts_until_done=True,
        tls=config.tls,
        # Pulls take a connection of their own, on which no heartbeat tells the client.
        ext_fields={"clientId": client_id},
        sign=config.signer(),
        verify_crc=config.verify_crc,
    )
