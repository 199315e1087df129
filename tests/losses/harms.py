"""Damage to files and to JSON: each function says in words what it did; None where there was nothing to damage."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FileHarm = Callable[[random.Random, Path], str | None]
#: Numbers that a field does not expect.
NUMBERS: tuple[Any, ...] = (-1, 0, 1, -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1, 1 << 63, 1 << 40, 19, 255)
_OTHERS: tuple[Any, ...] = (None, "text", "7", [], {}, 1.5, 1e300, True)
_NOWHERE = "/nowhere/archive"


def place(chance: random.Random, content: bytes) -> int:
    """A position in a file: mostly before the zeroes at its end, often near them."""
    written = len(content.rstrip(b"\0"))
    end = written if chance.random() < 0.9 else len(content)
    if chance.random() < 0.25:
        return max(0, end - chance.randrange(1, 400))
    return chance.randrange(max(end, 1))


def write(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)


def number(chance: random.Random, size: int) -> bytes:
    value = chance.choice((*NUMBERS, chance.randrange(1 << 16), chance.getrandbits(63)))
    return struct.pack(">Q", value & (1 << 64) - 1)[-size:]


def flip(chance: random.Random, file: Path, at: int | None = None) -> str | None:
    content = file.read_bytes()
    if not content:
        return None
    at = place(chance, content) if at is None else min(at, len(content) - 1)
    bit = chance.randrange(8)
    write(file, at, bytes([content[at] ^ 1 << bit]))
    return f"bit {bit} flipped at {at:,}"


def overwrite(chance: random.Random, file: Path) -> str:
    at, size = place(chance, file.read_bytes()), chance.choice((1, 4, 8, 20, 64, 300, 5000))
    write(file, at, chance.randbytes(size))
    return f"{size} random bytes written at {at:,}"


def zero(chance: random.Random, file: Path, at: int | None = None) -> str:
    content = file.read_bytes()
    at = place(chance, content) if at is None else at
    if chance.random() < 0.5:
        at = at // 20 * 20
    size = max(0, min(chance.choice((1, 8, 20, 40, 100, 1000, len(content))), len(content) - at))
    write(file, at, bytes(size))
    return f"{size} bytes zeroed from {at:,}"


def truncate(chance: random.Random, file: Path, size: int | None = None) -> str:
    content = file.read_bytes()
    if size is None:
        size = chance.choice((chance.randrange(9), chance.randrange(len(content) + 1), place(chance, content)))
    os.truncate(file, size)
    filled = chance.random() < 0.3
    if filled:
        os.truncate(file, len(content))
    return f"cut to {size:,} bytes{', and filled with zeroes' if filled else ''}"


def remove(_: random.Random, file: Path) -> str:
    file.unlink()
    return "removed"


def empty(chance: random.Random, file: Path) -> str:
    file.write_bytes(b"" if chance.random() < 0.6 else bytes(file.stat().st_size))
    return f"emptied, with {file.stat().st_size:,} bytes"


def append(chance: random.Random, file: Path) -> str:
    size, zeroes = chance.choice((1, 7, 20, 100, 5000)), chance.random() < 0.4
    with file.open("ab") as opened:
        opened.write(bytes(size) if zeroes else chance.randbytes(size))
    return f"{size} {'zeroes' if zeroes else 'random bytes'} appended"


def make_directory(_: random.Random, file: Path) -> str:
    file.unlink()
    file.mkdir()
    return "a directory in its place"


def link_nowhere(_: random.Random, file: Path) -> str:
    file.unlink()
    file.symlink_to(_NOWHERE)
    return "a link that leads nowhere in its place"


#: By weight.
FILE_HARMS: tuple[tuple[FileHarm, int], ...] = (
    (flip, 6),
    (overwrite, 5),
    (zero, 8),
    (truncate, 8),
    (remove, 6),
    (empty, 5),
    (append, 3),
    (make_directory, 1),
)


def edit_json(chance: random.Random, value: Any) -> str | None:
    """Changes, removes or renames one member somewhere in a JSON value: what a person may do, too."""
    places: list[tuple[Any, Any]] = []
    _collect(value, places)
    if not places:
        return None
    numbers = [(holder, key) for holder, key in places if type(holder[key]) is int]
    # another name or type is mostly refused at once
    is_near = bool(numbers) and chance.random() < 0.6
    holder, key = chance.choice(numbers if is_near else places)
    old = holder[key]
    if is_near and chance.random() < 0.6:
        holder[key] = old + chance.randrange(-20, 21)
        return f"{key!r} is {holder[key]!r}"
    kind = chance.choice(("number", "number", "other", "removed", "renamed", "added"))
    if kind == "removed":
        del holder[key]
        return f"{key!r} is gone"
    if kind in {"renamed", "added"} and isinstance(holder, dict):
        other = chance.choice((f"{key}x", "", "17", "-1", "4294967296", "00", "broker-z", str(key).upper()))
        holder[other] = holder.pop(key) if kind == "renamed" else old
        return f"{key!r} {kind}: {other!r}"
    holder[key] = chance.choice(_OTHERS if kind == "other" else NUMBERS)
    return f"{key!r} is {holder[key]!r}"


def _collect(value: Any, places: list[tuple[Any, Any]]) -> None:
    """All places within a JSON value that can be set."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        places.append((value, key))
        _collect(inner, places)


#: Fields of a record's head, of a unit, of the head of an index, of the checkpoint: position and size.
_RECORD_FIELDS = ((0, 4), (4, 4), (8, 4), (12, 4), (16, 4), (20, 8), (28, 8), (36, 4), (40, 8), (56, 8), (84, 4))
_UNIT_FIELDS = ((0, 8), (8, 4), (12, 8))
_INDEX_FIELDS = ((0, 8), (8, 8), (16, 8), (24, 8), (32, 4), (36, 4))
_CHECKPOINT_FIELDS = ((0, 8), (8, 8), (16, 8), (24, 8), (4064, 4), (4068, 8), (4076, 8), (4084, 4), (4088, 4))
_UNIT_SIZE = 20
_NAMES = ("0" * 20, "0" * 19 + "7", "9" * 20, "-" + "0" * 19, "00000000000000004096", "99999999999999999980", "x")
_Harm = Callable[[random.Random, Path, Sequence[int]], str | None]


def harm_store(chance: random.Random, store: Path, records: Sequence[int]) -> str:
    """Harms a store once; `records` are physical offsets of its records. Returns what it did, in words."""
    kinds, weights = zip(*_HARMS, strict=True)
    while True:
        kind: _Harm = chance.choices(kinds, weights)[0]
        if (done := kind(chance, store, records)) is not None:
            return done


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())


def _file(chance: random.Random, store: Path) -> Path | None:
    """A file of the store; each kind of files is as likely as the others."""
    kind = chance.choices(("commitlog", "consumequeue", "index", "config", "checkpoint"), (8, 6, 2, 2, 2))[0]
    files = _files(store / kind) or [path for path in [store / kind] if path.is_file() and not path.is_symlink()]
    return chance.choice(files) if files else None


def _record(chance: random.Random, store: Path, records: Sequence[int]) -> tuple[Path, int] | None:
    """A file of the log and the position of a record in it."""
    offset = records[-1 - chance.randrange(min(5, len(records)))] if chance.random() < 0.3 else chance.choice(records)
    for file in reversed(_files(store / "commitlog")):
        if file.name.isdigit() and int(file.name) <= offset:
            at = offset - int(file.name)
            return (file, at) if at + 8 <= file.stat().st_size else None
    return None


def _harm_file(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    kinds, weights = zip(*FILE_HARMS, (link_nowhere, 2), strict=True)
    file, kind = _file(chance, store), chance.choices(kinds, weights)[0]
    words = None if file is None else kind(chance, file)
    return None if file is None or words is None else f"{_name(store, file)}: {words}"


def _harm_record(chance: random.Random, store: Path, records: Sequence[int]) -> str | None:
    record = _record(chance, store, records)
    if record is None:
        return None
    file, at = record
    kind = chance.choices(("flip", "number", "zero", "cut"), (8, 6, 4, 2))[0]
    if kind == "number":
        return _write_number(chance, store, file, at, _RECORD_FIELDS)
    if kind == "flip":
        words = flip(chance, file, at + chance.randrange(140))
    else:
        words = (zero if kind == "zero" else truncate)(chance, file, at)
    return f"{_name(store, file)}, record at {at:,}: {words}"


def _write_number(
    chance: random.Random, store: Path, file: Path, at: int, fields: Sequence[tuple[int, int]]
) -> str | None:
    if not file.is_file() or file.is_symlink():
        return None
    field, size = chance.choice(fields)
    data = number(chance, size)
    write(file, at + field, data)
    return f"{_name(store, file)}: {data.hex()} written at {at + field:,}"


def _write_number_of_unit(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    files = _files(store / "consumequeue")
    if not files:
        return None
    file = chance.choice(files)
    written = len(file.read_bytes().rstrip(b"\0")) // _UNIT_SIZE + 1
    unit = max(0, written - 1 - chance.randrange(3)) if chance.random() < 0.3 else chance.randrange(written)
    return _write_number(chance, store, file, unit * _UNIT_SIZE, _UNIT_FIELDS)


def _write_number_of_head(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    files = _files(store / "index")
    if files and chance.random() < 0.25:
        return _write_number(chance, store, chance.choice(files), 0, _INDEX_FIELDS)
    return _write_number(chance, store, store / "checkpoint", 0, _CHECKPOINT_FIELDS)


def _copy_another(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    """Another file's content: an older file of the log, another queue's."""
    file = _file(chance, store)
    if file is None:
        return None
    others = [other for other in _files(store / file.relative_to(store).parts[0]) if other != file]
    if not others:
        return None
    other = chance.choice(others)
    content = file.read_bytes()
    at = 0 if chance.random() < 0.6 else place(chance, content)
    write(file, at, other.read_bytes()[at : len(content)])
    return f"wrote {_name(store, other)} over {_name(store, file)} from {at:,}"


def _exchange(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    file, other = _file(chance, store), _file(chance, store)
    if file is None or other is None or file == other:
        return None
    content = file.read_bytes()
    file.write_bytes(other.read_bytes())
    other.write_bytes(content)
    return f"exchanged {_name(store, file)} and {_name(store, other)}"


def _duplicate_record(chance: random.Random, store: Path, records: Sequence[int]) -> str | None:
    one, other = _record(chance, store, records), _record(chance, store, records)
    if one is None or other is None:
        return None
    head = one[0].read_bytes()[one[1] :]
    write(other[0], other[1], head[: min(struct.unpack_from(">I", head)[0], len(head), 4096)])
    return f"copied the record of {_name(store, one[0])} at {one[1]:,} to {_name(store, other[0])} at {other[1]:,}"


def _rename(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    file, name = _file(chance, store), chance.choice(_NAMES)
    if file is None or file.with_name(name).exists():
        return None
    file.rename(file.with_name(name))
    return f"renamed {_name(store, file)} to {name}"


def _remove_directory(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    queues = [path for path in (store / "consumequeue").rglob("*") if path.is_dir() and not path.is_symlink()]
    others = [store / name for name in ("consumequeue", "index", "config", "commitlog")]
    found = sorted(queues) if queues and chance.random() < 0.85 else [path for path in others if path.is_dir()]
    if not found:
        return None
    directory, is_linked = chance.choice(found), chance.random() < 0.2
    shutil.rmtree(directory)
    if is_linked:
        directory.symlink_to("/nowhere/archive")
    return f"removed {_name(store, directory)}{', a link that leads nowhere in its place' if is_linked else ''}"


def _change_abort(_: random.Random, store: Path, __: Sequence[int]) -> str | None:
    file = store / "abort"
    if file.exists():
        file.unlink()
        return "removed abort"
    file.touch()
    return "made abort"


def _edit_config(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    files = [file for file in _files(store / "config") if file.suffix == ".json"]
    if not files:
        return None
    file = chance.choice(files)
    try:
        content = json.loads(file.read_bytes())
    except ValueError:
        return None
    words = edit_json(chance, content)
    file.write_text(json.dumps(content))
    return words and f"{_name(store, file)}: {words}"


def _name(store: Path, path: Path) -> str:
    return str(path.relative_to(store))


_HARMS: tuple[tuple[_Harm, int], ...] = (
    (_harm_file, 40),
    (_harm_record, 20),
    (_write_number_of_unit, 5),
    (_write_number_of_head, 4),
    (_copy_another, 5),
    (_exchange, 2),
    (_duplicate_record, 3),
    (_rename, 2),
    (_remove_directory, 6),
    (_change_abort, 2),
    (_edit_config, 4),
)
