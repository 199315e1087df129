"""Strategies that think up stores for `writer`: small, hostile, and shrinking to the plain.

Names collide in their hash codes, properties repeat and are empty, bodies end just at the end of a file.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from .consume_queue import SCHEDULE_TOPIC, UNIT_BYTES
from .host import Host
from .index_file import Geometry
from .record import LOOPBACK, TRANSACTION_COMMIT, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from .writer import Message, Options

FILE_SIZE = 2048
START_MILLIS = 1_700_000_000_000

# hash codes that collide (Aa and BB, AaAa and BBBB), surrogate pairs, abs(hashCode) of -2^31
HOSTILE_NAMES = (
    "TagA",
    "Aa",
    "BB",
    "AaAa",
    "BBBB",
    "AaBB",
    "标签",
    "ταγ",
    "🚀",
    "polygenelubricants",
    "*",
    " ",
    "a||b",
)
TOPICS = ("T", "Aa", "BB", "%RETRY%g", SCHEDULE_TOPIC, "t" * 127)
LONG_TOPICS = ("%RETRY%" + "L" * 121, "%RETRY%" + "L" * 248)
HOSTS = (LOOPBACK, Host("10.0.0.1", 0), Host("fd00::2", 40000), Host("::ffff:1.2.3.4", 65535), Host("::", 1))

# no separators of the property format, no lone surrogates: those are tested on bytes, not through the writer
_text = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=12)
names = st.sampled_from(HOSTILE_NAMES) | _text
# False first: it is what examples shrink to
rarely = st.sampled_from([False] * 9 + [True])
i32 = st.integers(-(1 << 31), (1 << 31) - 1)


@st.composite
def properties(draw: st.DrawFn) -> tuple[tuple[str, str], ...]:
    """Pairs in any order; names may repeat, values may be empty or hold the name-value separator."""
    pairs = draw(st.lists(st.tuples(_text, _text | st.sampled_from(["", "a\x01b"])), max_size=3))
    for name, values in (("TAGS", names), ("KEYS", _keys()), ("UNIQ_KEY", st.sampled_from(["U1", "U2", "FD" * 28]))):
        for value in draw(st.lists(values, max_size=2 if draw(rarely) else 1)):
            pairs.insert(draw(st.integers(0, len(pairs))), (name, value))
    return tuple(pairs)


def _keys() -> st.SearchStrategy[str]:
    """Several keys, with doubled and leading spaces among them."""
    return st.lists(names | st.just(""), min_size=1, max_size=4).map(" ".join).filter(bool)


def bodies(max_size: int = 600) -> st.SearchStrategy[bytes]:
    """Empty ones, small ones, ones that compress well, and some of a third of a file."""
    repeated = st.builds(lambda part, times: part * times, st.binary(min_size=1, max_size=6), st.integers(1, 40))
    long = st.integers(max_size // 2, max_size).map(lambda size: bytes(i * 31 % 251 for i in range(size)))
    return st.binary(max_size=20) | repeated | long


@st.composite
def messages(draw: st.DrawFn, topics: Sequence[str] = TOPICS, millis: int = START_MILLIS) -> Message:
    """One message, of at most a third of a file, stored at `millis`."""
    pairs = draw(properties())
    topic = draw(st.sampled_from(topics))
    if topic == SCHEDULE_TOPIC and draw(st.booleans()):
        pairs += (("DELAY", str(draw(st.integers(0, 20)))),)
    transaction = draw(st.sampled_from([0, 0, 0, 0, TRANSACTION_COMMIT, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK]))
    return Message(
        topic=topic,
        body=draw(bodies()),
        queue_id=draw(st.integers(0, 2)),
        properties=pairs,
        flag=draw(i32),
        sys_flag=transaction | draw(st.sampled_from([0, 0x2])),
        compression=draw(st.sampled_from([None, None, "zlib", "lz4", "zstd"])),
        born_timestamp=millis - draw(st.integers(0, 5000)),
        born_host=draw(st.sampled_from(HOSTS)),
        store_timestamp=millis,
        store_host=draw(st.sampled_from(HOSTS)),
        reconsume_times=draw(st.integers(0, 16)),
        prepared_transaction_offset=draw(st.integers(0, 1 << 40)),
    )


@st.composite
def message_lists(
    draw: st.DrawFn, topics: Sequence[str] = TOPICS, max_size: int = 25
) -> list[Message | tuple[Message, ...]]:
    """Messages and batches, their store times rising, often equal; a batch has one topic, queue and time."""
    millis, found = START_MILLIS, list[Message | tuple[Message, ...]]()
    for _ in range(draw(st.integers(0, max_size))):
        millis += draw(st.sampled_from([0, 0, 1, 7, 999, 1000, 60_000]))
        message = draw(messages(topics, millis))
        found.append(draw(_batch(message)) if draw(rarely) else message)
    return found


@st.composite
def _batch(draw: st.DrawFn, first: Message) -> tuple[Message, ...]:
    parts = draw(st.lists(st.tuples(st.binary(max_size=100), names), min_size=1, max_size=3))
    return tuple(
        Message(
            first.topic,
            body,
            first.queue_id,
            (("TAGS", tag),),
            sys_flag=first.sys_flag,
            store_timestamp=first.store_timestamp,
        )
        for body, tag in parts
    )


@st.composite
def options(draw: st.DrawFn) -> Options:
    """Options for files of 2 KiB."""
    starts = st.dictionaries(st.tuples(st.sampled_from(TOPICS), st.integers(0, 2)), st.integers(0, 12), max_size=3)
    return Options(
        commitlog_file_size=FILE_SIZE,
        consume_queue_file_size=draw(st.sampled_from([1, 5, 100])) * UNIT_BYTES,
        index_geometry=Geometry(slots=draw(st.integers(1, 20)), entries=draw(st.integers(2, 30))),
        commitlog_dirs=draw(st.sampled_from([("commitlog",), ("commitlog", "commitlog-b"), ("a", "b", "c")])),
        first_file=draw(st.sampled_from([0, 0, 1, 5])),
        first_queue_offsets=draw(starts),
        v2=draw(st.booleans()),
        property_crc=draw(st.booleans()),
        trailing_separator=draw(st.booleans()),
        dirty_blanks=draw(st.booleans()),
        preallocated=draw(st.booleans()),
        aborted=draw(st.booleans()),
    )


@st.composite
def stores(draw: st.DrawFn) -> tuple[list[Message | tuple[Message, ...]], Options]:
    """What `write_store` takes, with topics of more than 127 bytes among it."""
    return draw(message_lists(TOPICS + LONG_TOPICS)), draw(options())
