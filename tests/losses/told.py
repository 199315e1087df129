"""The log of rmqfast during a read of harmed data."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["warnings_told"]


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextmanager
def warnings_told() -> Iterator[list[str]]:
    """Collects warnings and errors."""
    collector, logger = _Collector(), logging.getLogger("rmqfast")
    logger.addHandler(collector)
    try:
        yield collector.texts
    finally:
        logger.removeHandler(collector)
