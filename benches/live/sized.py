"""A job at two sizes: what it costs to begin, and the rows a second behind that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from data import QUEUES
from peer import Answer, Failed

FEW = 8  # rows of a queue that take no time
#: A job that has just been compiled is slower than it is in the rounds that count.
SPARE = 1.1


@dataclass
class Sized:
    """One side's job, which reads so many rows of each queue, so many times within one job.

    Its first calls find out the size at which it takes so many seconds, and a later one that was too short finds out a
    larger one. Each other call runs it three times and gives
    one answer: `value` is milliseconds of one read of a few rows; `rows`, `seconds` and `cpu_seconds` are the
    differences between the large size and as many reads of a few rows each, so that what a read costs to plan is in
    neither.

    Attributes:
        ask: Runs the job: how many reads, how many rows of each queue.
        seconds: What the large size shall take, at least.
        queue_rows: Rows of a queue; None: as many as one likes.
        tries: Calls that find out the size.
    """

    ask: Callable[[int, int], Answer]
    seconds: float
    queue_rows: int | None
    tries: int
    reads: int = 1
    rows: int = FEW

    def __call__(self) -> Answer:
        """The answer of one round; of the first calls that of a job that was too short."""
        begin = self.ask(1, FEW)
        if self.tries > 0:
            self.tries -= 1
            tried = (self.queue_rows or 400_000) // 4
            answer = self.ask(1, tried)
            self._fit(tried, answer, begin)
            return answer
        small, count = begin if self.reads == 1 else self.ask(self.reads, FEW), self.reads * self.rows
        large = self.ask(self.reads, self.rows)
        if large["seconds"] < self.seconds:  # what was compiled meanwhile made it faster
            self._fit(count, large, small)
        return {**difference(large, small), "value": begin["seconds"] * 1000}

    def _fit(self, count: int, answer: Answer, small: Answer) -> None:
        """The size at which it takes long enough, if so many rows of a queue gave that answer."""
        # the first job of all may have taken longer than this one
        seconds = max(answer["seconds"] - small["seconds"], answer["seconds"] / 4)
        wanted = int(count / seconds * self.seconds * SPARE)
        self.reads = 1 if self.queue_rows is None else -(-wanted // self.queue_rows)
        self.rows = max(wanted // self.reads, 4 * FEW)


def difference(large: Answer, small: Answer) -> Answer:
    """The larger answer minus the smaller one."""
    if large["seconds"] <= small["seconds"]:
        raise Failed(f"{large['rows']} rows took no longer than {small['rows']}: the machine is busy")
    return {name: large[name] - small[name] for name in ("rows", "seconds", "cpu_seconds")}


def repeated(whole: Callable[[], Answer], part: Callable[[], Answer] | None, seconds: float) -> Answer:
    """The difference between the whole and a part, with as many copies as take that many seconds.

    Of a quick run's log there is no part.
    """
    total: Answer = {"rows": 0, "seconds": 0.0, "cpu_seconds": 0.0}
    while total["seconds"] < seconds:
        more = whole() if part is None else difference(whole(), part())
        total = {name: total[name] + more[name] for name in total}
    return total


def rows_of(reads: int, rows: int) -> int:
    return reads * rows * QUEUES
