"""The loop of an ingest: step after step is read, written and committed, up to the present end of the source.

Source: `MicroBatchExecution` of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rmqfast.errors import CorruptError
from rmqfast.message import Damage
from rmqfast.tables.errors_table import ErrorsTable
from rmqfast.tables.position import Position, Selection, distance
from rmqfast.tables.source import Source, Step
from rmqfast.tables.step_writer import StepWriter
from rmqfast.tables.table import Table

Progress = Callable[[int, int], object]

_MOST_LISTED = 20


@dataclass
class Ingestion:
    """The state of an ingest.

    Attributes:
        source: The messages.
        table: The table.
        position: The position of the table.
        selection: The messages that the source selects.
        errors: The table of errors, if one is written.
        writer: Writes the files of steps.
        fails: Whether damage is an error.
        idle_bytes: Bytes of the log, or messages, without a row that are read again rather than committed.
        commits: Number of commits so far.
        files: Number of files that they have added.
    """

    source: Source
    table: Table
    position: Position | None
    selection: Selection
    errors: ErrorsTable | None
    writer: StepWriter
    fails: bool
    idle_bytes: int
    commits: int = 0
    files: int = 0

    def run(self, progress: Progress) -> None:
        """Writes and commits all steps. `progress` gets how far they are, and how far they will go."""
        at = committed = self.source.offsets.initial() if self.position is None else self.position.offsets
        total, done = distance(at, self.source.offsets.fix_end()), 0
        progress(done, total)
        while (step := self._next_step(at)) is not None:
            size = distance(step.start, step.end)

            def tell(parts: int, step: Step = step, begin: int = done, size: int = size) -> None:
                progress(min(begin + size * parts // len(step.pieces), total), total)

            if self._commit(step, committed, tell):
                committed = step.end
            at, done = step.end, done + size
        damage = self.source.damage_behind(at)
        self._check(damage)
        self.writer.counts.damage.update(damage)

    def _next_step(self, at: str) -> Step | None:
        """Returns the step that begins at some offsets: the one that an ingest has left unfinished, or a new one."""
        end = None if self.errors is None else self.errors.unfinished_end(at)
        end = self.source.offsets.next_end(at) if end is None else end
        return None if end is None else self.source.step_between(at, end)

    def _commit(self, step: Step, committed: str, tell: Callable[[int], None]) -> bool:
        """Writes a step, and commits it with all since the last commit. Returns whether it has committed."""
        written = self.writer.write(step, self._check, tell)
        if not any(written) and distance(committed, step.end) < self.idle_bytes:
            return False
        errors = self.errors
        if errors is not None and errors.unfinished_end(committed) is None:
            errors.commit(written.error_files, committed, step.end, self.selection)
        after = Position(offsets=step.end, selection=self.selection)
        self.table.commit(written.files, self.position, after)
        self.position = after
        self.commits += 1
        self.files += len(written.files)
        return True

    def _check(self, damage: Sequence[Damage]) -> None:
        """Raises `CorruptError` for damage, if that is an error."""
        if not damage or not self.fails:
            return
        places = list(map(_place, damage[:_MOST_LISTED]))
        if len(damage) > _MOST_LISTED:
            places.append(f"and {len(damage) - _MOST_LISTED} more")
        text = f"{self.table.name} ends before {len(damage)} damaged places: {'; '.join(places)}"
        raise CorruptError(f'{text}; on_damage="warn" writes what is left')


def _place(damage: Damage) -> str:
    broker = "" if damage.broker_name is None else f"broker {damage.broker_name}, "
    return f"{broker}{damage.file} at offset {damage.offset}, {damage.length} bytes: {damage.reason}"
