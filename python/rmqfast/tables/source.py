"""The messages that an ingest reads, in steps. Each step becomes one commit of the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rmqfast.errors import ArgumentError, DataLossError
from rmqfast.message import Damage
from rmqfast.store import Scan

if TYPE_CHECKING:
    import pyarrow as pa

#: Texts of errors about streams of Spark, and what they are called here.
_WORDS = (
    (r"[;\n]? ?give this stream a checkpointLocation of its own", "; write to another table"),
    (r"a new checkpointLocation begins anew", "another table begins anew"),
    (r"failOnDataLoss=false", 'on_damage="warn"'),
    (r"the checkpoint's offset", "the table's position"),
    (r"\bcheckpoint\b", "table"),
    (r"\bthis stream\b", "this ingest"),
)


class Step(NamedTuple):
    """Messages between two positions of a source.

    Attributes:
        start: Offsets of the source before the step, as JSON.
        end: Offsets behind it.
        pieces: Parts that can be read independently of each other, for `Source.scan`.
        lost: Bytes of a store's log that are gone.
    """

    start: str
    end: str
    pieces: list[Any]
    lost: list[Damage]


class Source(Protocol):
    """Where messages come from: a store's log, or topics of a cluster."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of all batches."""
        ...

    def initial(self) -> str:
        """Returns the offsets at which a new table begins."""
        ...

    def fix_end(self) -> str:
        """Fixes the present end as that of all further steps. Returns its offsets."""
        ...

    def next_step(self, start: str) -> Step | None:
        """Returns the step that begins at some offsets. None at the end.

        Raises:
            DataLossError: The source does not continue there, unless damage is only warned of.
        """
        ...

    def step_between(self, start: str, end: str) -> Step:
        """Returns the step with all messages between two positions."""
        ...

    def scan(self, piece: Any) -> Scan:
        """Returns the messages of a part of a step."""
        ...

    @property
    def losses(self) -> list[str]:
        """Messages that could not be read so far: they no longer exist, or their broker is away."""
        ...

    def damage_behind(self, end: str) -> list[Damage]:
        """Returns damaged bytes behind the last message, at which the log of a broker that crashed may end."""
        ...

    def close(self) -> None: ...


@contextmanager
def errors_name_tables() -> Iterator[None]:
    """Makes errors about a stream's checkpoint speak of the table's position."""
    try:
        yield
    except (ArgumentError, DataLossError) as error:
        error.args = (text_about_table(str(error)), *error.args[1:])
        raise


def text_about_table(text: str) -> str:
    """Returns a text about a stream's checkpoint as one about the table's position."""
    for pattern, word in _WORDS:
        text = re.sub(pattern, word, text)
    return text
