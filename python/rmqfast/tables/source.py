"""The messages that an ingest reads, in steps. Each step becomes one commit of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rmqfast.message import Damage
from rmqfast.store import Scan

if TYPE_CHECKING:
    import pyarrow as pa


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


class Offsets(Protocol):
    """The offsets of a source: where it begins, and where its steps end."""

    @property
    def losses(self) -> list[str]:
        """Messages that could not be read so far: they no longer exist, or their broker is away."""
        ...

    def initial(self) -> str:
        """Returns the offsets at which a new table begins."""
        ...

    def fix_end(self) -> str:
        """Fixes the present end as that of all further steps. Returns its offsets."""
        ...

    def next_end(self, start: str) -> str | None:
        """Returns the end of the step that begins at some offsets. None if there is nothing to read.

        Raises:
            DataLossError: The source does not continue there, unless damage is only warned of.
        """
        ...

    def close(self) -> None: ...


class Source(Protocol):
    """The messages of a store's log, of the logs of several brokers, or of topics of a cluster."""

    @property
    def offsets(self) -> Offsets: ...

    @property
    def schema(self) -> pa.Schema:
        """The columns of all batches."""
        ...

    def step_between(self, start: str, end: str) -> Step:
        """Returns the step with all messages between two positions."""
        ...

    def scan(self, piece: Any) -> Scan:
        """Returns the messages of a part of a step."""
        ...

    def damage_behind(self, end: str) -> list[Damage]:
        """Returns damaged bytes behind the last message, at which the log of a broker that crashed may end."""
        ...
