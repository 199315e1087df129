"""Bars of measured speed, from the newest records: Spark beside Kafka, the broker beside RocketMQ's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from goals import FIRST
from images.svg import Palette, document, rectangle, stroke, text
from measurement import Series
from pages.row import Row, ratio, short
from report import human

WIDTH, LEFT, RIGHT = 700, 246, 526
BAR, GROUP, HEAD, FOOT = 16, 48, 58, 30


@dataclass(frozen=True)
class Panel:
    """Bars with one axis, which begins at zero."""

    title: str
    peer: str
    name: str
    unit: str
    step: float
    rows: tuple[Row, ...]

    @property
    def height(self) -> int:
        """In pixels, with title and axis."""
        return HEAD + GROUP * len(self.rows) + FOOT

    @property
    def top(self) -> float:
        """The end of the axis: the first step beyond the longest bar."""
        longest = max(one.rate for row in self.rows for one in sides(row))
        return self.step * (longest // self.step + 1)


PANELS = (
    Panel(
        "Spark 4.0: rows per second, 1 KiB bodies",
        "Kafka tuned, with Spark's connector",
        "Kafka",
        "rows/s",
        1e6,
        (
            Row("a store, sum", "kafka rmqfast columnar {}", "", "kafka tuned {}"),
            Row("a store by Python, all columns", "kafka rmqfast arrow {}", "", "kafka tuned {}"),
            Row("a live topic out of its log, sum", "live log log {}", "", "live log Kafka {}"),
            Row("a live topic by pulls, sum", "live sum-4.0 JVM {}", "", "live sum-4.0 Kafka {}"),
            Row("a live topic by pulls, all columns", "live noop-4.0 JVM {}", "", "live noop-4.0 Kafka {}"),
        ),
    ),
    Panel(
        "Broker: messages per second of Java clients, 1 KiB bodies",
        "RocketMQ 4.9.4",
        "RocketMQ",
        "messages/s",
        50e3,
        (
            Row("sync send, 16 threads", "broker rmqfast sync 16 {}", "", "broker RocketMQ sync 16 {}"),
            Row("pull of 32", "broker rmqfast pull 32 {}", "", "broker RocketMQ pull 32 {}"),
        ),
    ),
)


#: By language.
_WORDS = {
    "en": (
        "Reading a store is {store} times as fast as Spark's tuned Kafka source; a live topic {pulls} times, "
        "or {log} times from the broker's log"
    ),
    "zh": (
        "每秒读取的行数与调优后的 Kafka 相比，存储是 {store} 倍，"  # noqa: RUF001 - Chinese commas
        "在线主题是 {pulls} 倍，直接读取其提交日志（CommitLog）是 {log} 倍"  # noqa: RUF001
    ),
}


def in_words(language: str) -> str:
    """The first rows of Spark as a line of the README, in a language of `_WORDS`."""
    store, _, log, pulls, _ = PANELS[0].rows
    return _WORDS[language].format(store=times(store), pulls=times(pulls), log=times(log))


def speed(colours: Palette) -> str:
    """The chart as a file."""
    parts: list[str] = []
    y = 0
    for panel in PANELS:
        parts += bars(panel, y, colours)
        y += panel.height
    (cores,) = {row.record.about["machine"]["cores"] for panel in PANELS for row in panel.rows}
    notes = (
        f"{cores} cores, shared by all sides; a store is a directory on the machine. Below each name: its record.",
        "sum: sum(length(body)). All columns: 21 of rmqfast, 7 of Kafka's source. The log is that of RocketMQ 4.9.4.",
    )
    parts += [text(16, y + 18 + 17 * number, note, style="small") for number, note in enumerate(notes)]
    size = (WIDTH, y + 18 + 17 * len(notes))
    return document(size, "Measured speed of rmqfast", description(), colours, parts)


def bars(panel: Panel, y: int, colours: Palette) -> Iterator[str]:
    """A panel from `y` on: title, legend, axis, two bars for each row."""
    yield text(16, y + 26, panel.title, style="title")
    legend = (16, colours.ours, "rmqfast"), (100, colours.peer, panel.peer)
    for x, colour, name in legend:
        yield rectangle(x, y + 36, 12, 12, colour)
        yield text(x + 18, y + 47, name)
    base, bottom = y + HEAD, y + HEAD + GROUP * len(panel.rows)
    scale = (RIGHT - LEFT) / panel.top
    for number in range(round(panel.top / panel.step) + 1):
        mark = LEFT + number * panel.step * scale
        yield stroke(f"M{mark:.4g} {base}V{bottom}", colours.grid)
        yield text(round(mark, 1), bottom + 16, human(number * panel.step), style="small", anchor="middle")
    for number, row in enumerate(panel.rows):
        at = base + GROUP * number + 7
        yield text(LEFT - 10, at + 13, row.what, anchor="end")
        yield text(LEFT - 10, at + 29, row.record.name, style="small", anchor="end")
        ours, peer = sides(row)
        for place, one, colour in ((at, ours, colours.ours), (at + BAR + 1, peer, colours.peer)):
            yield rectangle(LEFT, place, one.rate * scale, BAR, colour)
        yield text(LEFT + round(ours.rate * scale) + 6, at + 13, f"{human(ours.rate)}, {times(row)} times {panel.name}")
        yield text(LEFT + round(peer.rate * scale) + 6, at + 30, human(peer.rate))


def sides(row: Row) -> Sequence[Series]:
    """Both sides of a row, for the larger bodies."""
    return [row.record.series[name] for name in row.names(FIRST)]


def times(row: Row) -> str:
    ours, peer = sides(row)
    return short(ratio(ours, peer, row.kind), frozenset())


def description() -> str:
    """The same in words."""
    said = []
    for panel in PANELS:
        for row in panel.rows:
            ours, peer = (f"{human(one.rate)} {panel.unit}" for one in sides(row))
            said.append(f"{row.what}: rmqfast {ours}, {panel.peer} {peer}, {times(row)} times as fast.")
    return " ".join(said)
