"""Pulls ranges of one broker's queues into Arrow batches, many pulls in flight at once.

Source: `DefaultLitePullConsumerImpl.PullTaskImpl`, `PullAPIWrapper.pullKernelImpl`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rmqfast._native import Fetched, FlowControl, Puller, PullerEvent
from rmqfast.client.ranges.range_progress import RangeProgress, Verdict, next_step_of
from rmqfast.client.ranges.range_request import QueueRange, RangeRequest
from rmqfast.client.ranges.range_rows import RangeRows
from rmqfast.client.ranges.topic_routes import TopicRoutes
from rmqfast.errors import ArgumentError, ClientError, DataLossError, RemotingConnectError, RmqError
from rmqfast.remoting.credentials import Credentials

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

#: How long one look for answers waits, in seconds.
_LOOK = 0.5
#: Bytes of records that become batches together, and how long more of them are waited for, in seconds: an answer of 32
#: messages, which is what brokers give unless their limits were raised, costs more to hand on alone than to pull.
_GATHERED = (1 << 20, 0.02)
#: Answers that become batches together, however little they have.
_MOST = 1024
#: Between two looks at the route while the broker does not answer, and two at a queue that ends early, in seconds.
_PAUSE = 1.0


class RangePull:
    """Reads ranges of queues of one broker; a queue once at most.

    Args:
        request: What is read.
        ranges: The ranges.
        address: `host:port` of the broker, where that is known; otherwise a name server is asked.
        clock: Tells the time in seconds.

    Attributes:
        rows: Messages that were handed out.
        size: Bytes of records that were pulled.

    Raises:
        ArgumentError: Ranges of several brokers, or two of a queue.

    Source: `DefaultLitePullConsumerImpl.PullTaskImpl`.
    """

    def __init__(
        self,
        request: RangeRequest,
        ranges: Sequence[QueueRange],
        address: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if len({wanted.queue for wanted in ranges}) < len(ranges):
            raise ArgumentError("ranges: expected one of each queue at most")
        if len({wanted.queue.broker_name for wanted in ranges}) > 1:
            raise ArgumentError("ranges: expected queues of one broker")
        self._request, self._ranges, self._address, self._clock = request, ranges, address, clock
        self._broker_name = ranges[0].queue.broker_name if ranges else ""
        self._rows = RangeRows(request)
        self._waited = 0.0
        self._pulled: dict[int, RangeProgress] = {}
        self._epochs: dict[int, int] = {}
        self._late: dict[int, float] = {}
        self._is_lost = False
        self._next_look = 0.0
        self._puller = self._make_puller()
        self.rows = self.size = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields batches; the messages of a queue are in their order, those of several queues are mixed.

        Raises:
            DataLossError: Messages of a range are not there any more, unless `on_damage` is "warn".
            ClientError: A broker refuses, or does not answer for as long as the request's patience is.
            MissingExtraError: pyarrow is not installed.
        """
        progress = (RangeProgress(wanted, is_filtered=self._request.is_filtered, now=0.0) for wanted in self._ranges)
        self._pulled = {of.wanted.queue.queue_id: of for of in progress if not of.is_done}
        if not self._pulled:
            return
        try:
            self._open(self._address or self._looked_up())
            while self._pulled:
                yield from self._look()
        finally:
            self._puller.close()

    def _look(self) -> Iterator[pa.RecordBatch]:
        began = self._clock()
        items = self._puller.take(_LOOK, max_items=_MOST)
        for event in (item for item in items if isinstance(item, PullerEvent) and item.address == self._address):
            self._note(event)
        # what Spark makes of a batch meanwhile is not the broker's time
        self._waited += self._clock() - began
        found = [item for item in items if not isinstance(item, PullerEvent | FlowControl) and self._has_rows(item)]
        if found:
            self.size += sum(item.size for item in found)
            for batch in self._rows.batches(found):
                self.rows += batch.num_rows
                yield batch
        self._go_on_late()
        self._look_after()

    def _has_rows(self, item: Fetched) -> bool:
        queue_id = item.queue.queue_id
        progress = self._pulled.get(queue_id)
        if progress is None or self._epochs.get(queue_id) != item.epoch:
            return False
        verdict = progress.take(item, self._waited)
        self._act(progress, verdict)
        return verdict.has_rows

    def _act(self, progress: RangeProgress, verdict: Verdict) -> None:
        queue_id = progress.wanted.queue.queue_id
        if verdict.refusal:
            raise ClientError(
                f"{progress.wanted}: broker {self._address} refuses: {verdict.refusal}",
                next_step=next_step_of(verdict.refusal),
            )
        if verdict.loss:
            self._lost(progress, verdict.loss)
        if progress.is_done:
            self._pulled.pop(queue_id)
        elif verdict.is_late:
            self._late.setdefault(queue_id, self._waited + _PAUSE)
        elif verdict.seek is not None:
            self._assign(progress)

    def _lost(self, progress: RangeProgress, what: str) -> None:
        text = f"{progress.wanted}: messages are lost: {what}"
        if self._request.on_damage == "fail":
            raise DataLossError(text, next_step='on_damage="warn" (failOnDataLoss=false) reads what is left')
        _log.warning("%s", text)

    def _go_on_late(self) -> None:
        for queue_id in [queue_id for queue_id, at in self._late.items() if at <= self._waited]:
            del self._late[queue_id]
            if queue_id in self._pulled:
                self._assign(self._pulled[queue_id])

    def _look_after(self) -> None:
        """Whether a range waits for too long, and whether the broker is to be had elsewhere."""
        if self._is_lost and self._waited >= self._next_look:
            self._next_look = self._waited + _PAUSE
            self._move()
        patience = self._request.patience
        for progress in [of for of in self._pulled.values() if of.stalled(self._waited) > patience]:
            if not progress.ends_early:
                raise ClientError(
                    f"{progress.wanted}: nothing came for {patience:g} s from broker {self._address} at offset "
                    f"{progress.next}: {progress.trouble or 'no answer'}",
                    next_step="see that the broker runs, and that this machine reaches that address",
                )
            self._act(progress, progress.give_up())

    def _note(self, event: PullerEvent) -> None:
        self._is_lost = not event.is_connected
        if event.is_connected:
            return
        _log.warning("broker %s at %s is lost, and tried again: %s", self._broker_name, self._address, event.reason)
        for progress in self._pulled.values():
            if not progress.ends_early:
                progress.trouble = event.reason

    def _move(self) -> None:
        """Goes on at another address, if the broker has one by now: a slave, or a master that came back elsewhere.

        Source: `MQClientInstance.findBrokerAddressInSubscribe`.
        """
        try:
            address = self._looked_up()
        except RmqError as error:
            _log.warning("where broker %s is now cannot be told: %s", self._broker_name, error)
            return
        if address != self._address:
            _log.warning("broker %s is read at %s from now on", self._broker_name, address)
            self._open(address)

    def _looked_up(self) -> str:
        topic = self._request.topic
        with TopicRoutes(self._request.config) as routes:
            address = routes.of_topic(topic).addresses.get(self._broker_name)
        if address is None:
            raise RemotingConnectError(
                f"no broker of the name {self._broker_name} stands in the route of topic {topic}: is it running?"
            )
        return address

    def _open(self, address: str) -> None:
        self._address, self._is_lost = address, False
        self._late.clear()
        for progress in self._pulled.values():
            self._assign(progress)

    def _make_puller(self) -> Puller:
        request, config = self._request, self._request.config
        signed: dict[str, Any] = {}
        if config.access_key is not None and config.secret_key is not None:
            signed["sign"] = Credentials(config.access_key, config.secret_key, config.security_token).sign
        return Puller(
            consumer_group=request.group,
            depth=request.depth,
            batch=request.batch,
            suspend=0.0,  # a broker looks every five seconds only whether it has held a pull for long enough
            timeout=request.timeout,
            connect_timeout=config.connect_timeout,
            tls=config.tls,
            max_body_bytes=request.max_body_bytes,
            gather=_GATHERED,
            burst=max(request.depth // 2, 1),  # the broker reads several requests at a time
            **signed,
        )

    def _assign(self, progress: RangeProgress) -> None:
        assert self._address is not None  # noqa: S101 - for mypy
        queue, subscription = progress.wanted.queue, self._request.subscription
        self._epochs[queue.queue_id] = self._puller.assign(
            queue,
            self._address,
            progress.next,
            end=progress.wanted.end,
            expression=subscription.sub_string,
            expression_type=subscription.expression_type,
            sub_version=subscription.sub_version,
            tags=self._request.wanted_tags,
        )
