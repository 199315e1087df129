"""Mutations of a broker's `config/` directory."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.losses.metadata_brokers import LeftBehind, parsed

__all__ = ["OLDER", "harm"]

#: Begins the words of a mutation that puts an older file in its place.
OLDER = "older copy of"
_PAGE = 4096
_WAL_HEADER, _WAL_FRAME = 32, 24 + _PAGE
_NUMBERS = ["-1", "9223372036854775807", "9223372036854775808", "1e400", "1.5", "null", '"7"', "true", "[]", "{}"]


def harm(left: LeftBehind, root: Path, chance: random.Random) -> str:
    """Harms a file of a copy of a store, and tells in words how."""
    config = root / "config"
    files = sorted(path for path in config.iterdir() if path.is_file())
    if not files:
        return "none is left"
    path = chance.choices(files, [6 if "metadata" in path.name else 1 for path in files])[0]
    kinds = _OF_TEXT if ".json" in path.name else _OF_DATABASE
    kind = chance.choice([*_OF_ALL, *kinds])
    return f"{kind(left, path, chance)} {path.name}" + _place(path)


def _place(path: Path) -> str:
    return f" ({path.stat().st_size:,} bytes)" if path.is_file() else ""


def _flip(_: LeftBehind, path: Path, chance: random.Random) -> str:
    text = bytearray(path.read_bytes())
    bits = [chance.randrange(8 * len(text)) for _ in range(chance.choice((1, 1, 1, 3)))] if text else []
    for bit in bits:
        text[bit // 8] ^= 1 << bit % 8
    path.write_bytes(text)
    return f"bits {bits} flipped of"


def _truncate(_: LeftBehind, path: Path, chance: random.Random) -> str:
    text = path.read_bytes()
    size = chance.randrange(len(text) + 1)
    path.write_bytes(text[:size])
    return f"{len(text) - size:,} bytes cut off of"


def _empty(_: LeftBehind, path: Path, _chance: random.Random) -> str:
    path.write_bytes(b"")
    return "empty:"


def _remove(_: LeftBehind, path: Path, _chance: random.Random) -> str:
    path.unlink()
    return "removed:"


def _directory(_: LeftBehind, path: Path, _chance: random.Random) -> str:
    path.unlink()
    path.mkdir()
    return "a directory in the place of"


def _garbage(_: LeftBehind, path: Path, chance: random.Random) -> str:
    path.write_bytes(chance.randbytes(chance.choice((1, 100, 5_000))))
    return "garbage in the place of"


def _append(_: LeftBehind, path: Path, chance: random.Random) -> str:
    with path.open("ab") as file:
        file.write(chance.choice((bytes(100), chance.randbytes(5_000))))
    return "garbage behind"


def _older(left: LeftBehind, path: Path, chance: random.Random) -> str:
    generation = chance.choice(sorted(left.copies))
    source = left.copies[generation] / "config" / path.name
    if not source.exists():
        path.unlink()
        return f"{OLDER} generation {generation}, which has none:"
    shutil.copy(source, path)
    return f"{OLDER} generation {generation}:"


def _older_log(left: LeftBehind, path: Path, chance: random.Random) -> str:
    """The write-ahead log of an older time, beside the database as it is."""
    generation = chance.choice(sorted(left.copies))
    shutil.copy(left.copies[generation] / "config" / "metadata.db-wal", path.with_name("metadata.db-wal"))
    return f"{OLDER} generation {generation} of the log beside"


def _zero_page(_: LeftBehind, path: Path, chance: random.Random) -> str:
    return _overwritten(path, chance, bytes(_PAGE), "zeroed")


def _random_page(_: LeftBehind, path: Path, chance: random.Random) -> str:
    return _overwritten(path, chance, chance.randbytes(_PAGE), "overwritten")


def _overwritten(path: Path, chance: random.Random, page: bytes, words: str) -> str:
    text = bytearray(path.read_bytes())
    number = chance.randrange(len(text) // _PAGE + 1)
    text[number * _PAGE : (number + 1) * _PAGE] = page[: max(len(text) - number * _PAGE, 0)]
    path.write_bytes(text)
    return f"page {number} {words} of"


def _swap_pages(_: LeftBehind, path: Path, chance: random.Random) -> str:
    text = path.read_bytes()
    pages = [text[at : at + _PAGE] for at in range(0, len(text), _PAGE)]
    if len(pages) > 1:
        first, second = chance.sample(range(len(pages)), 2)
        pages[first], pages[second] = pages[second], pages[first]
    path.write_bytes(b"".join(pages))
    return "pages swapped of"


def _old_page(left: LeftBehind, path: Path, chance: random.Random) -> str:
    """A page as it was, a write that never reached the disk."""
    source = left.copies[chance.choice(sorted(left.copies))] / "config" / path.name
    old = source.read_bytes() if source.exists() else b""
    number = chance.randrange(len(old) // _PAGE + 1)
    page = old[number * _PAGE : (number + 1) * _PAGE]
    return f"{OLDER} {_overwritten(path, random.Random(number), page, 'put into')}"


def _cut_frames(_: LeftBehind, path: Path, chance: random.Random) -> str:
    """Cut where a page, or a frame of the log, begins."""
    text = path.read_bytes()
    header, size = (_WAL_HEADER, _WAL_FRAME) if path.name.endswith("-wal") else (0, _PAGE)
    pieces = max((len(text) - header) // size, 0)
    path.write_bytes(text[: header + size * chance.randrange(pieces + 1)])
    return f"pages cut off of the {pieces} of"


def _half_written(_: LeftBehind, path: Path, chance: random.Random) -> str:
    text = path.read_bytes()
    size = chance.randrange(len(text) + 1)
    path.write_bytes(text[:size] + bytes(len(text) - size))
    return f"zeroes from {size:,} on in"


def _number(_: LeftBehind, path: Path, chance: random.Random) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    numbers = list(re.finditer(r"\d+", text))
    if not numbers:
        return "no number in"
    found = chance.choice(numbers)
    other = chance.choice([*_NUMBERS, str(chance.randrange(1000))])
    path.write_text(text[: found.start()] + other + text[found.end() :], encoding="utf-8")
    return f"{found.group()} at {found.start():,} became {other} in"


def _edit(_: LeftBehind, path: Path, chance: random.Random) -> str:
    """An entry, or a member, removed, renamed or with another value: what a person may do, too."""
    try:
        value: Any = parsed(path.read_bytes())
    except ValueError:
        return "not edited:"
    place: dict[str, Any] = value if isinstance(value, dict) else {}
    for _depth in range(chance.randrange(3)):
        inner = [member for member in place.values() if isinstance(member, dict) and member]
        if inner:
            place = chance.choice(inner)
    if not place:
        return "not edited:"
    name = chance.choice(sorted(place))
    old = place.pop(name)
    others: dict[str, Any] = {"renamed": old, "null": None, "a list": [old], "a text": "x"}
    kind = chance.choice(("removed", *others))
    if kind in others:
        place[f"{name}x" if kind == "renamed" else name] = others[kind]
    path.write_text(json.dumps(value), encoding="utf-8")
    return f"member {name!r}: {kind} in"


def _other_value(_: LeftBehind, path: Path, chance: random.Random) -> str:
    text = chance.choice(
        ("{}", "null", "[]", "0", '""', "{", "\ufeff{}", '{"offsetTable":{}}', '{"topicConfigTable":{}}')
    )
    path.write_text(text, encoding="utf-8")
    return f"{text!r} in the place of"


_Kind = Callable[[LeftBehind, Path, random.Random], str]
_OF_ALL: list[_Kind] = [_flip, _flip, _truncate, _empty, _remove, _directory, _garbage, _append, _older]
_OF_DATABASE: list[_Kind] = [
    _flip,
    _zero_page,
    _random_page,
    _swap_pages,
    _old_page,
    _old_page,
    _cut_frames,
    _cut_frames,
    _older_log,
]
_OF_TEXT: list[_Kind] = [_half_written, _number, _number, _edit, _edit, _edit, _other_value]
