"""Reports the metrics of this process's clients to OpenTelemetry, as observable instruments.

Source: the semantic conventions of OpenTelemetry for messaging clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation, get_meter

from rmqfast import __version__
from rmqfast.client.metrics import client_metrics
from rmqfast.metrics import Family, Kind, Sample
from rmqfast.system import monotonic
from rmqfast.threads import new_lock

_SCHEMA = "https://opentelemetry.io/schemas/1.37.0"
#: The names of the conventions, for the metrics that these know.
_NAMES = {"rmqfast_client_consumed_total": "messaging.client.consumed.messages"}
_ATTRIBUTES = {
    "client_id": "messaging.client.id",
    "group": "messaging.consumer.group.name",
    "topic": "messaging.destination.name",
}
#: Seconds for which all instruments of a collection share one reading.
_SHARED = 0.5


def observe_clients(meter_provider: MeterProvider | None = None) -> None:
    """Makes the metrics of all clients in this process instruments of OpenTelemetry. Call it once.

    `messaging.client.consumed.messages` is that of the conventions; the others are `rmqfast.client.failed` and so on.
    They are read when the reader of the provider collects, and cost nothing in between.

    Args:
        meter_provider: Collects the instruments. Default: the global one.

    Example:
        >>> from opentelemetry.sdk.metrics import MeterProvider
        >>> from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        >>> reader = InMemoryMetricReader()
        >>> observe_clients(MeterProvider([reader]))
    """
    meter = get_meter("rmqfast", __version__, meter_provider, _SCHEMA)
    reading = _Reading()
    for family in client_metrics():
        _create(meter, family, partial(_observations, reading, family.name))


class _Reading:
    """The newest metrics, which the instruments of one collection share."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._families: dict[str, Family] = {}
        self._read_at: float | None = None

    def family(self, name: str) -> Family:
        with self._lock:
            if self._read_at is None or monotonic() - self._read_at > _SHARED:
                self._families = {family.name: family for family in client_metrics()}
                self._read_at = monotonic()
            return self._families[name]


def _create(meter: Meter, family: Family, callback: Callable[[CallbackOptions], Iterable[Observation]]) -> None:
    name = _NAMES.get(family.name) or family.name.removesuffix("_total").replace("rmqfast_client_", "rmqfast.client.")
    unit = "s" if "_seconds" in family.name else "{message}"
    create = meter.create_observable_counter if family.kind is Kind.COUNTER else meter.create_observable_gauge
    create(name, [callback], unit=unit, description=family.help)


def _observations(reading: _Reading, name: str, _options: CallbackOptions) -> Iterator[Observation]:
    family = reading.family(name)
    for sample in family.samples:
        if isinstance(sample, Sample):
            attributes = {_ATTRIBUTES[key]: value for key, value in zip(family.labels, sample.labels, strict=True)}
            yield Observation(sample.value, {"messaging.system": "rocketmq", **attributes})
