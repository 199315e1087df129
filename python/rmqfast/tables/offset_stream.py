"""The offsets of a source: where it begins, and where its steps end. They are those of a stream of Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rmqfast._native import SparkStream
from rmqfast.errors import ArgumentError, DataLossError

#: Texts of errors about streams of Spark, and what they are called here.
_WORDS = (
    (r"[;\n]? ?give this stream a checkpointLocation of its own", "; write to another table"),
    (r"a new checkpointLocation begins anew", "another table begins anew"),
    (r"failOnDataLoss=false", 'on_damage="warn"'),
    (r"the checkpoint's offset", "the table's position"),
    (r"\bcheckpoint\b", "table"),
    (r"\bthis stream\b", "this ingest"),
)


class OffsetStream:
    """The `Offsets` of a stream. Its errors and warnings speak of tables, not of checkpoints.

    Args:
        open_stream: Opens the stream, with a function that takes its warnings.

    Attributes:
        losses: Messages that could not be read so far: they no longer exist, or their broker is away.
    """

    def __init__(self, open_stream: Callable[[Callable[[str], object]], SparkStream]) -> None:
        self.losses: list[str] = []
        self._native = open_stream(lambda text: self.losses.append(_about_table(text)))

    def initial(self) -> str:
        return self._native.initial()

    def fix_end(self) -> str:
        self._native.aim()
        return self._native.latest(None, is_limited=False)

    def next_end(self, start: str) -> str | None:
        with _errors_about_tables():
            end = self._native.latest(start, is_limited=True)
        return None if json.loads(end) == json.loads(start) else end

    def pieces(self, start: str, end: str) -> list[bytes]:
        """Returns the parts of a step: none if it only moves the position, as where a topic was made anew."""
        with _errors_about_tables():
            return self._native.pieces(start, end)

    def close(self) -> None:
        self._native.close()


@contextmanager
def _errors_about_tables() -> Iterator[None]:
    """Makes errors about a stream's checkpoint speak of the table's position."""
    try:
        yield
    except (ArgumentError, DataLossError) as error:
        error.args = (_about_table(str(error)), *error.args[1:])
        raise


def _about_table(text: str) -> str:
    for pattern, word in _WORDS:
        text = re.sub(pattern, word, text)
    return text
