"""The picture of data flow: stores and live brokers on the left, users' tools on the right."""

from __future__ import annotations

from collections.abc import Iterator

from images.svg import Palette, document, rectangle, stroke, text

SIZE = (700, 400)
_DESCRIPTION = (
    "RocketMQ clients in Java, C++, Go and Node talk to the broker of rmqfast, which writes a store directory."
    " The Rust core scans a store directory, pulls from a live RocketMQ cluster, and mirrors the log of a live"
    " broker into a store directory. What it reads goes to Arrow, pandas, Polars and DuckDB, to Spark through a"
    " columnar source in its JVM, and to the Python clients, which also send to a cluster."
)


def architecture(colours: Palette) -> str:
    """The picture as a file."""
    return document(SIZE, "The parts of rmqfast", _DESCRIPTION, colours, [*parts(colours)])


def parts(colours: Palette) -> Iterator[str]:
    """Boxes from left to right, then the arrows between them."""
    yield arrow_head(colours)
    yield from box((16, 16, 204), ("RocketMQ clients", "Java, C++, Go, Node, mqadmin"), colours.line, colours)
    yield from box((16, 116, 204), ("rmqfast broker", "in your tests, or a server"), colours.ours, colours)
    yield from box((16, 216, 204), ("Store directory", "live, a backup, a mount"), colours.line, colours)
    yield from box((16, 316, 204), ("Live RocketMQ cluster", "4.9 or 5.x"), colours.line, colours)
    yield rectangle(288, 116, 140, 264, colours.box, line=colours.ours, round_=8)
    yield text(358, 140, "Rust core", style="title", anchor="middle")
    for y, name in ((216, "scan"), (266, "mirror"), (316, "pull, send")):
        yield rectangle(304, y + 10, 108, 36, colours.page, line=colours.line, round_=6)
        yield text(358, y + 33, name, anchor="middle")
    yield text(358, 162, "one extension,", style="small", anchor="middle")
    yield text(358, 178, "no JVM", style="small", anchor="middle")
    yield rectangle(504, 42, 14, 14, colours.box, line=colours.ours, round_=3)
    yield text(526, 54, "parts of rmqfast", style="small")
    yield from box((504, 116, 180), ("Arrow", "pandas, Polars, DuckDB"), colours.line, colours)
    yield from box((504, 216, 180), ("Spark 3.5 and 4.x", "columnar source in the JVM"), colours.ours, colours)
    yield from box((504, 316, 180), ("Python clients", "also for asyncio"), colours.ours, colours)
    yield from arrows(colours)


def arrows(colours: Palette) -> Iterator[str]:
    one, both = ' marker-end="url(#head)"', ' marker-start="url(#head)" marker-end="url(#head)"'
    for points, ends in (
        ("M118 84V108", both),  # clients, broker
        ("M118 184V208", both),  # broker, store
        ("M220 240H296", one),  # store, scan
        ("M228 336H296", both),  # cluster, pull and send
        ("M220 352H258V300H296", one),  # cluster, mirror
        ("M304 284H240V262H228", one),  # mirror, store
        ("M428 150H496", one),
        ("M428 250H496", one),
        ("M436 350H496", both),
    ):
        yield stroke(points, colours.line, ends=ends)


def arrow_head(colours: Palette) -> str:
    """The marker at the ends of arrows."""
    shape = f'<path d="M0 0L10 5L0 10z" fill="{colours.line}"/>'
    place = 'viewBox="0 0 10 10" refX="2" refY="5" markerWidth="6" markerHeight="6" orient="auto-start-reverse"'
    return f'<defs><marker id="head" {place}>{shape}</marker></defs>'


def box(place: tuple[int, int, int], words: tuple[str, str], outline: str, colours: Palette) -> Iterator[str]:
    """A box at x and y, so wide, with two lines of text."""
    x, y, width = place
    yield rectangle(x, y, width, 68, colours.box, line=outline, round_=8)
    yield text(x + width / 2, y + 30, words[0], style="title", anchor="middle")
    yield text(x + width / 2, y + 50, words[1], style="small", anchor="middle")
