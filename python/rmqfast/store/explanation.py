"""Explanations of scans: the planned reads, and the use of each filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from html import escape
from typing import Any, Literal, NamedTuple

from rmqfast.cells import one_line, size_text

#: "exact"; a bound that holds ("at most"); an expectation from samples of the queues ("about"); or nothing is known.
Certainty = Literal["exact", "at most", "about", "unknown"]
#: From the surest on.
_CERTAINTIES: tuple[Certainty, ...] = ("exact", "at most", "about", "unknown")
PieceWay = Literal["straight", "queue", "pull", "log", "mirror"]

_IO_TEXTS = {"auto": "maps under leases, or pread"}
# pieces and queues that the text tells one by one
_MOST_PIECES = 8
_MOST_QUEUES = 16


class QueueRange(NamedTuple):
    """Messages of a queue of a cluster, from an offset to another one, which is not read."""

    topic: str
    broker_name: str
    queue_id: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic} {self.queue_id} of {self.broker_name}: from {self.start:,} to {self.end:,}"


@dataclass(frozen=True)
class FilterUse:
    """A filter of a scan. `narrows_by` tells how it spares reading; None if it only sorts out what was read."""

    name: str
    narrows_by: str | None


@dataclass(frozen=True, kw_only=True)
class PieceExplanation:
    """The planned reads of one piece of a scan. Numbers are bounds ("at most"); None where no bound is known.

    Attributes:
        way: Of a store: "straight" through the log, or by "queue". Of a cluster: by "pull", by the "log" of the broker,
            or out of a "mirror".
        reason: Why it is read in this way.
        begin: First physical offset.
        end: Physical offset before which the piece ends.
        log_bytes: Bytes of the commit log; of a map, those that are looked at.
        log_reads: Ranges of the log that are read: system calls, or parts of requests; 0 with maps.
        queue_bytes: Bytes of consume queues.
        queue_reads: Ranges of consume queues that are read.
        files: Files of the log and of queues.
        queues: Of a cluster: the queues and their offsets, which are fixed.
        address: Of a cluster: the address of the broker.
        broker_name: Of several stores: the broker of the store.
    """

    way: PieceWay
    reason: str
    begin: int | None = None
    end: int | None = None
    log_bytes: int | None = None
    log_reads: int | None = None
    queue_bytes: int | None = None
    queue_reads: int | None = None
    files: int | None = None
    queues: tuple[QueueRange, ...] = ()
    address: str | None = None
    broker_name: str | None = None

    def __str__(self) -> str:
        where = "" if self.begin is None else f" from {self.begin:,} to {self.end:,}"
        figures = [
            f"at most {size_text(size)}{'' if reads is None else f' in {reads:,} reads'} of the {name}"
            for name, size, reads in (
                ("log", self.log_bytes, self.log_reads),
                ("queues", self.queue_bytes, self.queue_reads),
            )
            if size
        ]
        messages = sum(max(each.end - each.start, 0) for each in self.queues)
        if self.queues:
            figures.append(f"at most {messages:,} messages of {len(self.queues):,} queues")
        at = "" if self.address is None else f" at {self.address}"
        at += "" if self.broker_name is None else f" of {self.broker_name}"
        return f"{self.way}{at}{where}: {', '.join(figures) or 'nothing'}; {self.reason}"


@dataclass(frozen=True, kw_only=True)
class ScanExplanation:
    """The planned reads of a scan, and the use of each filter. `str()` gives them as text.

    Figures are for a sound store or log: behind damage a scan also searches for the next record. The planning itself,
    which bisects and samples the queues, is not counted. A limit may end the scan earlier.

    Attributes:
        messages: Number of messages; see `messages_are`. "about" comes from samples of the queues, and counts what
            passes the filters by topic, queue, offset and hash of the tag.
        messages_are: How sure that number is: "exact", "at most", "about" or "unknown".
        expected_bytes: Expected bytes of the records that are read by queue, from samples; None if nothing is.
        columns: Columns of the rows.
        filters: The filters, and which of them narrow the reading.
        pieces: The pieces in the order of reading.
        threads: Maximum number of threads.
        limit: Maximum number of rows.
        io: "auto", "pread" or "mmap" for files, as in `open_store`; "pull" for a cluster. By "auto" a scan needs fewer
            reads of the log than are told, since it maps files that nobody writes.
        not_read: What is left out, in words.

    Example:
        >>> import rmqfast
        >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
        >>> explanation = store.scan("fx_q1", way="log").explain()
        >>> explanation.log_bytes, explanation.log_reads
        (2515548, 10)
    """

    messages: int | None
    messages_are: Certainty
    expected_bytes: int | None = None
    columns: tuple[str, ...]
    filters: tuple[FilterUse, ...]
    pieces: tuple[PieceExplanation, ...]
    threads: int
    limit: int | None
    io: Literal["auto", "pread", "mmap", "pull"]
    not_read: tuple[str, ...] = ()

    @property
    def log_bytes(self) -> int | None:
        """The most bytes of the log that are read; None if that is not known."""
        return _sum(piece.log_bytes for piece in self.pieces)

    @property
    def log_reads(self) -> int | None:
        """The most ranges of the log that are read; None if that is not known."""
        return _sum(piece.log_reads for piece in self.pieces)

    @property
    def queue_bytes(self) -> int | None:
        """The most bytes of consume queues that are read; None if that is not known."""
        return _sum(piece.queue_bytes for piece in self.pieces)

    @property
    def queue_reads(self) -> int | None:
        """The most ranges of consume queues that are read; None if that is not known."""
        return _sum(piece.queue_reads for piece in self.pieces)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields and sums, for JSON."""
        sums = {name: getattr(self, name) for name in ("log_bytes", "log_reads", "queue_bytes", "queue_reads")}
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        filters = [asdict(used) for used in self.filters]
        pieces = [asdict(piece) | {"queues": [each._asdict() for each in piece.queues]} for piece in self.pieces]
        return own | {"filters": filters, "pieces": pieces} | sums

    def __str__(self) -> str:
        return "\n".join(f"{name and name + ':':<11}{text}" for name, text in self._lines())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _lines(self) -> Iterable[tuple[str, str]]:
        yield "messages", self._messages_text()
        if self.limit is not None:
            yield "limit", f"{self.limit:,} rows; the scan may end earlier, and read less"
        yield "columns", one_line(", ".join(self.columns)) or "none"
        for used in self.filters:
            yield "filter", f"{used.name}: {used.narrows_by or 'sorts out messages that were read'}"
        yield "threads", f"at most {self.threads}, for {len(self.pieces)} pieces, by {_IO_TEXTS.get(self.io, self.io)}"
        yield from self._sum_lines()
        yield from _first("piece", list(map(str, self.pieces)), _MOST_PIECES)
        # several pieces of a mirror have the same queues
        queues = dict.fromkeys(each for piece in self.pieces for each in piece.queues)
        yield from _first("queue", list(map(str, queues)), _MOST_QUEUES)
        for text in self.not_read:
            yield "not read", one_line(text)

    def _sum_lines(self) -> Iterable[tuple[str, str]]:
        for name, size, reads in (
            ("log", self.log_bytes, self.log_reads),
            ("queues", self.queue_bytes, self.queue_reads),
        ):
            if size is not None:
                yield name, f"at most {size_text(size)} in at most {reads or 0:,} reads" if size else "nothing"
        if self.expected_bytes is not None:
            yield "expected", f"about {size_text(self.expected_bytes)} of records by queue"

    def _messages_text(self) -> str:
        if self.messages is None:
            return "not known before they are read"
        number = f"{self.messages:,}"
        if self.messages_are == "exact":
            return number
        by = " by topic, queue, offset and hash of the tag" if self.messages_are == "about" else ""
        return f"{self.messages_are} {number}{by}"


def _first(name: str, texts: Sequence[str], most: int) -> Iterable[tuple[str, str]]:
    """Yields the lines of the first texts, and one with the number of further ones."""
    for text in texts[:most]:
        yield name, one_line(text)
    if len(texts) > most:
        yield "", f"and {len(texts) - most:,} more of these"


def explain_store(
    explanation: Mapping[str, Any],
    count: int | None,
    *,
    columns: Iterable[str],
    threads: int,
    limit: int | None,
    io: Literal["auto", "pread", "mmap"],
) -> ScanExplanation:
    """Returns what the extension tells about a scan of a store. `count` is the number of messages if it is known."""
    pieces = tuple(
        PieceExplanation(
            way="straight" if way == "log" else "queue",
            reason=reason,
            begin=begin,
            end=end,
            log_bytes=log[0],
            log_reads=log[1],
            queue_bytes=queues[0],
            queue_reads=queues[1],
            files=files,
        )
        for way, reason, (begin, end), log, queues, files in explanation["pieces"]
    )
    expected = explanation["expected"]
    # without a piece there is no message, whatever the filters are
    messages, certainty = _messages(count if pieces else 0, expected and expected[0], limit)
    by_queue = any(piece.way == "queue" for piece in pieces)
    return ScanExplanation(
        messages=messages,
        messages_are=certainty,
        expected_bytes=expected[1] if expected and by_queue else None,
        columns=tuple(columns),
        filters=tuple(FilterUse(*used) for used in explanation["filters"]),
        pieces=pieces,
        threads=max(1, min(threads, len(pieces))),
        limit=limit,
        io=io,
        not_read=tuple(_not_read(explanation)),
    )


def join_explanations(explanations: Mapping[str, ScanExplanation], limit: int | None) -> ScanExplanation:
    """Returns the explanation of a scan of several stores from those of each, by broker. They have no limit."""
    each = list(explanations.values())
    expected = [one.expected_bytes for one in each if one.expected_bytes is not None]
    known = _sum(one.messages for one in each)
    certainty: Certainty = max((one.messages_are for one in each), key=_CERTAINTIES.index)
    if limit is not None:
        known, certainty = (limit, "at most") if known is None else (min(known, limit), certainty)
    pieces = [replace(piece, broker_name=name) for name, one in explanations.items() for piece in one.pieces]
    return replace(
        each[0],
        messages=known,
        messages_are=certainty,
        expected_bytes=sum(expected) if expected else None,
        filters=tuple({used.name: used for one in each for used in one.filters}.values()),
        pieces=tuple(pieces),
        threads=max(one.threads for one in each),
        limit=limit,
        not_read=tuple(f"{name}: {text}" for name, one in explanations.items() for text in one.not_read),
    )


def _messages(count: int | None, expected: int | None, limit: int | None) -> tuple[int | None, Certainty]:
    most = limit if limit is not None else 1 << 63
    if count is not None:
        return min(count, most), "exact"
    if expected is not None:
        return min(expected, most), "about"
    return limit, "unknown" if limit is None else "at most"


def _not_read(explanation: Mapping[str, Any]) -> Iterable[str]:
    for name in ("before", "behind"):
        if size := explanation[name]:
            yield f"{size_text(size)} of the log {name} the pieces"
    if explanation["unwritten"] is None:
        yield "where the log ends is not known yet: what is allocated behind its last record may be searched"
    elif size := explanation["unwritten"]:
        yield f"{size_text(size)} behind the end of the log, which are not written"
    if queues := explanation["other_queues"]:
        yield f"{queues} other queues of the topic"


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(number for number in known if number is not None)
