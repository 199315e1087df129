"""Spans of OpenTelemetry for messages that are sent and consumed; needs the extra `otel`."""

try:
    import opentelemetry.trace  # noqa: F401 - whether it is there
except ImportError:
    from rmqfast.errors import MissingExtraError

    message = "opentelemetry-api is needed for this: pip install 'rmqfast[otel]'"
    raise MissingExtraError(message, name="opentelemetry") from None

from rmqfast.otel.instrument import instrument

__all__ = ["instrument"]
