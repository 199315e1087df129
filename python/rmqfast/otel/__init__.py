"""OpenTelemetry: spans for messages that are sent and consumed, and metrics of clients. Needs the extra `otel`."""

from rmqfast.extras import import_extra

import_extra("opentelemetry.trace", "otel", library="opentelemetry-api")
# After the check above, whose error names the missing extra.
from rmqfast.otel.instrument import instrument  # noqa: E402
from rmqfast.otel.metrics import observe_clients  # noqa: E402

__all__ = ["instrument", "observe_clients"]
