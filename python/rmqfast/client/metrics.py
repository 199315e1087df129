"""The metrics of the clients in this process.

All figures are read from counts that clients keep per call and per pull, and not per message.

Source: RocketMQ's `ConsumerStatsManager`, whose rates brokers tell to administrators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rmqfast.client.instance import ClientInstance
from rmqfast.client.producer.member import ProducerMember
from rmqfast.client.push.counters import Totals
from rmqfast.client.push.push_member import PushMember
from rmqfast.metrics import Family, Kind, Sample, write_text
from rmqfast.metrics.server import MetricsServer

_BY_TOPIC = ("client_id", "group", "topic")


def serve_metrics(*, port: int, host: str = "127.0.0.1") -> MetricsServer:
    """Serves the metrics of all clients in this process over HTTP, at `/metrics`.

    Args:
        port: Port to listen at; 0 chooses a free one.
        host: Address to listen at. Default: only this machine may ask.

    Returns:
        The server, whose `close` ends it, as the end of a `with` does.

    Raises:
        RemotingError: The port is not available.

    Example:
        >>> from urllib.request import urlopen
        >>> with serve_metrics(port=0) as server, urlopen(f"http://{server.address}/metrics") as answer:
        ...     answer.status
        200
    """
    return MetricsServer(lambda: write_text(client_metrics()), port=port, host=host)


def client_metrics() -> list[Family]:
    """Returns the metrics of all clients in this process, at this moment."""
    consumers = list(_push_consumers())
    rows = [
        ((client_id, group, topic), totals)
        for client_id, group, member in consumers
        for topic, totals in member.counters.totals().items()
    ]
    families = [
        Family(
            f"rmqfast_client_{figure.name}_total",
            Kind.COUNTER,
            figure.text,
            _BY_TOPIC,
            [Sample(labels, getattr(totals, figure.attribute)) for labels, totals in rows],
        )
        for figure in _FIGURES
    ]
    return [*families, _cached_messages(consumers), _sends_in_flight()]


class _Figure(NamedTuple):
    name: str
    attribute: str
    text: str


_FIGURES = (
    _Figure("consumed", "ok", "Messages consumed."),
    _Figure("failed", "failed", "Messages for which the listener failed."),
    _Figure("calls", "calls", "Calls of the listener."),
    _Figure("call_seconds", "call_seconds", "Time of these calls."),
    _Figure("pulled", "pulled", "Messages pulled."),
    _Figure("dropped", "dropped", "Messages that the broker sent and the member does not want."),
    _Figure("pulls", "pulls", "Pulls with messages."),
    _Figure("pull_seconds", "pull_seconds", "Time of these pulls."),
)
assert {figure.attribute for figure in _FIGURES} == set(Totals._fields)  # noqa: S101 - each count is told


def _push_consumers() -> Iterator[tuple[str, str, PushMember]]:
    for instance in ClientInstance.all():
        for group, consumer in instance.consumers().items():
            if isinstance(consumer, PushMember):
                yield instance.client_id, group, consumer


def _cached_messages(consumers: list[tuple[str, str, PushMember]]) -> Family:
    counts: dict[tuple[str, str, str], int] = {}
    for client_id, group, member in consumers:
        for queue, process_queue in list(member.rebalance.process_queues.items()):
            key = (client_id, group, queue.topic)
            counts[key] = counts.get(key, 0) + process_queue.count
    text = "Messages pulled and not consumed yet."
    return Family(
        "rmqfast_client_cached_messages", Kind.GAUGE, text, _BY_TOPIC, [Sample(*row) for row in counts.items()]
    )


def _sends_in_flight() -> Family:
    samples = [
        Sample((instance.client_id, group), producer.in_flight)
        for instance in ClientInstance.all()
        for group, producer in instance.producers().items()
        if isinstance(producer, ProducerMember)
    ]
    text = "Asynchronous sends that wait for their answer."
    return Family("rmqfast_client_sends_in_flight", Kind.GAUGE, text, ("client_id", "group"), samples)
