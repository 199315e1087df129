"""The bench stores: the same deterministic messages for every engine, written once, cached outside the repository.

One topic, four queues round robin, random bodies of the base64 alphabet, the properties KEYS, UNIQ_KEY, WAIT and TAGS,
a hundred tags of one per cent each. A key begins with its message's tag, so that a log without tags can filter too.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

TOPIC = "bench_topic"
QUEUES = 4
TAG = "tag07"  # the one that the filters ask for: 1 % of the messages
SEGMENT = 1 << 30
QUEUE_FILE = 6_000_000
CHUNK = 20_000
BORN_FROM = 1_700_000_000_000
PROPERTIES = 85
MESSAGE_MAGIC, BLANK_MAGIC = 0xDAA320A7, 0xCBD43194
Lines = npt.NDArray[Any]  # of bytes, one line per message; or of numbers, one per message
ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
TAGS = [f"tag{n:02d}" for n in range(100)]


@dataclass(frozen=True)
class Dataset:
    """The messages of a store: their number, the size of their bodies and a short label."""

    label: str
    body: int
    rows: int

    @property
    def record(self) -> int:
        """Bytes of one record of the commit log."""
        return 91 + self.body + len(TOPIC) + PROPERTIES

    @property
    def segment_rows(self) -> int:
        """Records that one segment takes; eight bytes stay free for the end-of-file marker."""
        return (SEGMENT - 8) // self.record

    @property
    def log_end(self) -> int:
        """The end of the messages in the broker's log."""
        segments, rest = divmod(self.rows, self.segment_rows)
        return segments * SEGMENT + rest * self.record

    @property
    def last_file(self) -> int:
        """The start of the last file of the broker's log."""
        return (self.log_end - 1) // SEGMENT * SEGMENT

    @property
    def log_bytes(self) -> int:
        """Bytes that the records take on the disk."""
        return self.rows * self.record

    @property
    def body_bytes(self) -> int:
        """Bytes of all bodies, what sum(length(body)) must give."""
        return self.rows * self.body

    @property
    def tagged_rows(self) -> int:
        """Messages with the tag that the filters ask for."""
        return sum(int((tags(start, stop) == TAGS.index(TAG)).sum()) for start, stop in self.spans())

    def physical_offsets(self, rows: Lines) -> Lines:
        """Byte offset in the commit log of each row number."""
        offsets: Lines = rows // self.segment_rows * SEGMENT + rows % self.segment_rows * self.record
        return offsets

    def spans(self) -> Iterator[tuple[int, int]]:
        """The row ranges that are made at a time."""
        for start in range(0, self.rows, CHUNK):
            yield start, min(start + CHUNK, self.rows)


def scratch_dir() -> Path:
    """The directory of stores, jars and servers: RMQFAST_BENCH_DIR, or rmqfast-bench in the temporary directory."""
    path = Path(os.environ.get("RMQFAST_BENCH_DIR") or Path(tempfile.gettempdir()) / "rmqfast-bench")
    path.mkdir(parents=True, exist_ok=True)
    return path


def store(dataset: Dataset) -> Path:
    """The store directory of a dataset, written if it is not there yet."""
    path, manifest = places(dataset)
    if manifest.exists() and json.loads(manifest.read_text()) == asdict(dataset):
        return path
    shutil.rmtree(path, ignore_errors=True)
    require_disk(dataset.log_bytes + dataset.rows * 40)
    write_log(dataset, path / "commitlog")
    write_queues(dataset, path / "consumequeue" / TOPIC)
    write_checkpoint(dataset, path / "checkpoint")
    manifest.write_text(json.dumps(asdict(dataset)))
    return path


def places(dataset: Dataset) -> tuple[Path, Path]:
    """The store directory of a dataset, and the file that says what a finished one holds."""
    name = f"store-{dataset.label}-{dataset.rows}"
    return scratch_dir() / name, scratch_dir() / f"{name}.json"


def discard(dataset: Dataset) -> None:
    """Removes a dataset's store."""
    path, manifest = places(dataset)
    manifest.unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)


def require_disk(needed: int) -> None:
    """Raises OSError unless the scratch directory has room for that many bytes and 2 GiB more."""
    free = shutil.disk_usage(scratch_dir()).free
    if free < needed + (2 << 30):
        raise OSError(f"not enough disk in {scratch_dir()}: expected {needed + (2 << 30)} bytes free, got {free}")


def warm(*paths: Path) -> int:
    """Reads every file below the paths once, so that the page cache holds them; returns the bytes read."""
    block, total = bytearray(4 << 20), 0
    for file in sorted(f for path in paths for f in path.rglob("*") if f.is_file()):
        # a broker replaces its small files while it runs
        with suppress(FileNotFoundError), file.open("rb", buffering=0) as stream:
            while got := stream.readinto(block):
                total += got
    return total


def tags(start: int, stop: int) -> Lines:
    """Tag number of each row: in every full chunk each tag has exactly one per cent, in random places."""
    shuffled = np.random.default_rng([7, start // CHUNK]).permutation(CHUNK) % 100
    numbers: Lines = shuffled[start % CHUNK : start % CHUNK + stop - start]
    return numbers


def bodies(dataset: Dataset, start: int, stop: int) -> Lines:
    """The bodies of a span of rows, one per line of the array."""
    noise = np.random.default_rng([11, dataset.body, start // CHUNK]).bytes((stop - start) * dataset.body)
    text: Lines = ALPHABET[np.frombuffer(noise, np.uint8).reshape(stop - start, dataset.body) & 63]
    return text


def keys(start: int, stop: int) -> Lines:
    """KEYS of each row, 17 characters: the tag, a dash, the row number."""
    tag = np.array(TAGS, "S5")[tags(start, stop)].view(np.uint8).reshape(-1, 5)
    dash = np.full((stop - start, 1), ord("-"), np.uint8)
    return np.hstack([tag, dash, digits(np.arange(start, stop), 11, 10)])


def unique_keys(start: int, stop: int) -> Lines:
    """UNIQ_KEY of each row, 32 hexadecimal digits as the Java client makes them."""
    prefix = np.tile(np.frombuffer(b"7F0000011A2B18B4AAC2", np.uint8), (stop - start, 1))
    return np.hstack([prefix, digits(np.arange(start, stop), 12, 16)])


def digits(numbers: Lines, width: int, base: int) -> Lines:
    """Each number in ASCII digits, with leading zeros."""
    powers = base ** np.arange(width - 1, -1, -1, dtype=np.int64)
    text: Lines = np.frombuffer(b"0123456789ABCDEF", np.uint8)[numbers[:, None] // powers % base]
    return text


def property_bytes(start: int, stop: int) -> Lines:
    """The property strings of a span of rows, PROPERTIES bytes each."""

    def text(value: bytes) -> Lines:
        return np.tile(np.frombuffer(value, np.uint8), (stop - start, 1))

    tag = np.array(TAGS, "S5")[tags(start, stop)].view(np.uint8).reshape(-1, 5)
    parts = [text(b"KEYS\1"), keys(start, stop), text(b"\2UNIQ_KEY\1"), unique_keys(start, stop)]
    return np.hstack([*parts, text(b"\2WAIT\1true\2TAGS\1"), tag])


def record_type(dataset: Dataset) -> np.dtype[Any]:
    """The commit log's record (message version 1, IPv4 hosts) as one fixed-size structure."""
    head = ["size", "magic", "crc", "queue_id", "flag"]
    fields: list[Any] = [(name, ">u4") for name in head]
    fields += [("queue_offset", ">i8"), ("physical_offset", ">i8"), ("sys_flag", ">i4"), ("born", ">i8")]
    fields += [
        ("born_host", "S4"),
        ("born_port", ">i4"),
        ("stored", ">i8"),
        ("store_host", "S4"),
        ("store_port", ">i4"),
    ]
    fields += [("reconsume", ">i4"), ("prepared", ">i8"), ("body_size", ">i4"), ("body", "u1", (dataset.body,))]
    fields += [("topic_size", "u1"), ("topic", f"S{len(TOPIC)}"), ("property_size", ">i2")]
    return np.dtype([*fields, ("properties", "u1", (PROPERTIES,))])


def records(dataset: Dataset, start: int, stop: int) -> Lines:
    """The records of a span of rows."""
    rows, out = np.arange(start, stop), np.zeros(stop - start, record_type(dataset))
    body = bodies(dataset, start, stop)
    out["size"], out["magic"], out["queue_id"] = dataset.record, MESSAGE_MAGIC, rows % QUEUES
    out["crc"] = np.fromiter((zlib.crc32(line) & 0x7FFFFFFF for line in body), np.uint32, len(body))
    out["queue_offset"], out["physical_offset"] = rows // QUEUES, dataset.physical_offsets(rows)
    out["born"], out["stored"] = BORN_FROM + rows // 100, BORN_FROM + rows // 100 + 1
    out["born_host"] = out["store_host"] = b"\x7f\0\0\1"
    out["born_port"], out["store_port"] = 45678, 10911
    out["body_size"], out["body"] = dataset.body, body
    out["topic_size"], out["topic"] = len(TOPIC), TOPIC.encode()
    out["property_size"], out["properties"] = PROPERTIES, property_bytes(start, stop)
    return out


def write_log(dataset: Dataset, path: Path) -> None:
    """Writes the segments; the last one is sparse to its full size, as a broker allocates it."""
    path.mkdir(parents=True)
    for first in range(0, dataset.rows, dataset.segment_rows):
        with (path / f"{first // dataset.segment_rows * SEGMENT:020d}").open("wb") as segment:
            last = min(first + dataset.segment_rows, dataset.rows)
            for start in range(first // CHUNK * CHUNK, last, CHUNK):
                made = records(dataset, start, min(start + CHUNK, dataset.rows))
                segment.write(made[max(first - start, 0) : last - start].tobytes())
            if last - first == dataset.segment_rows:
                blank = SEGMENT - segment.tell()
                segment.write(blank.to_bytes(4, "big") + BLANK_MAGIC.to_bytes(4, "big"))
            segment.truncate(SEGMENT)


def write_queues(dataset: Dataset, path: Path) -> None:
    """Writes the consume queues, in files of 300,000 units."""
    tag_codes = np.array([java_hash(tag) for tag in TAGS], np.int64)
    tag_of = np.concatenate([tags(start, stop) for start, stop in dataset.spans()])
    for queue in range(QUEUES):
        rows = np.arange(queue, dataset.rows, QUEUES)
        units = np.zeros(len(rows), np.dtype([("offset", ">i8"), ("size", ">i4"), ("tag", ">i8")]))
        units["offset"], units["size"] = dataset.physical_offsets(rows), dataset.record
        units["tag"] = tag_codes[tag_of[rows]]
        (path / str(queue)).mkdir(parents=True)
        for first in range(0, len(rows), QUEUE_FILE // 20):
            content = units[first : first + QUEUE_FILE // 20].tobytes()
            (path / str(queue) / f"{first * 20:020d}").write_bytes(content.ljust(QUEUE_FILE, b"\0"))


def write_checkpoint(dataset: Dataset, path: Path) -> None:
    """Says that log and queues are on the disk. Else whoever reads the files beside a broker walks the whole log."""
    # no later than the last message: a later time says that messages are missing, and no broker takes such a store
    stored = BORN_FROM + dataset.rows // 100
    path.write_bytes(stored.to_bytes(8, "big") * 3 + bytes(4096 - 24))


def java_hash(text: str) -> int:
    """String.hashCode of an ASCII text."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
