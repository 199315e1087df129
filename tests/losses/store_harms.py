"""Harms of a store's files: flipped bits, zeroes, numbers out of range, files that are cut, gone or exchanged."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["harm"]

#: Numbers that a field of four or eight bytes does not expect.
_NUMBERS = (-1, 0, 1, -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1, 1 << 40, 19, 255)
#: The head of a record: where its fields begin, and their sizes.
_RECORD_FIELDS = ((0, 4), (4, 4), (8, 4), (12, 4), (16, 4), (20, 8), (28, 8), (36, 4), (40, 8), (56, 8), (84, 4))
_UNIT_FIELDS = ((0, 8), (8, 4), (12, 8))
_INDEX_FIELDS = ((0, 8), (8, 8), (16, 8), (24, 8), (32, 4), (36, 4))
_CHECKPOINT_FIELDS = ((0, 8), (8, 8), (16, 8), (24, 8), (4064, 4), (4068, 8), (4076, 8), (4084, 4), (4088, 4))
_UNIT_SIZE = 20
_NOWHERE = "/nowhere/archive"
_NAMES = ("0" * 20, "0" * 19 + "7", "9" * 20, "-" + "0" * 19, "00000000000000004096", "99999999999999999980", "x")


def harm(chance: random.Random, store: Path, records: Sequence[int]) -> str:
    """Harms a store once; `records` are physical offsets of its records. Returns what it did, in words."""
    kinds, weights = zip(*_HARMS, strict=True)
    while True:
        kind: _Harm = chance.choices(kinds, weights)[0]
        if (done := kind(chance, store, records)) is not None:
            return done


def _file(chance: random.Random, store: Path) -> Path | None:
    """A file of the store; each kind of files is as likely as the others."""
    kinds = chance.choices(("commitlog", "consumequeue", "index", "config", "checkpoint"), (8, 6, 2, 2, 2))[0]
    files = [store / kinds] if kinds == "checkpoint" else _files(store / kinds)
    files = [file for file in files if file.is_file() and not file.is_symlink()]
    return chance.choice(files) if files else None


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())


def _place(chance: random.Random, content: bytes) -> int:
    """A position in a file: mostly where something stands, often near its end."""
    written = len(content.rstrip(b"\0"))
    end = written if chance.random() < 0.9 else len(content)
    if chance.random() < 0.25:
        return max(0, end - chance.randrange(1, 400))
    return chance.randrange(max(end, 1))


def _write(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)


def _flip_bit(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    file = _file(chance, store)
    if file is None or not (content := file.read_bytes()):
        return None
    at, bit = _place(chance, content), chance.randrange(8)
    _write(file, at, bytes([content[at] ^ 1 << bit]))
    return f"flipped bit {bit} of {_name(store, file)} at {at:,}"


def _flip_bit_of_record(chance: random.Random, store: Path, records: Sequence[int]) -> str | None:
    record = _record(chance, store, records)
    if record is None:
        return None
    file, start = record
    content = file.read_bytes()
    at, bit = min(start + chance.randrange(140), len(content) - 1), chance.randrange(8)
    _write(file, at, bytes([content[at] ^ 1 << bit]))
    return f"flipped bit {bit} of {_name(store, file)} at {at:,}, byte {at - start} of a record"


def _record(chance: random.Random, store: Path, records: Sequence[int]) -> tuple[Path, int] | None:
    """A file of the log and the position of a record in it."""
    offset = records[-1 - chance.randrange(min(5, len(records)))] if chance.random() < 0.3 else chance.choice(records)
    for file in reversed(_files(store / "commitlog")):
        if file.name.isdigit() and int(file.name) <= offset:
            at = offset - int(file.name)
            return (file, at) if at + 8 <= file.stat().st_size else None
    return None


def _number(chance: random.Random, size: int) -> bytes:
    number = chance.choice((*_NUMBERS, chance.randrange(1 << 16), chance.getrandbits(63)))
    return struct.pack(">Q", number & (1 << 64) - 1)[-size:]


def _write_number_of_record(chance: random.Random, store: Path, records: Sequence[int]) -> str | None:
    record = _record(chance, store, records)
    if record is None:
        return None
    file, start = record
    field, size = chance.choice(_RECORD_FIELDS)
    return _write_number(chance, store, file, start + field, size)


def _write_number(chance: random.Random, store: Path, file: Path, at: int, size: int) -> str:
    data = _number(chance, size)
    _write(file, at, data)
    return f"wrote {data.hex()} into {_name(store, file)} at {at:,}"


def _write_number_of_unit(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    files = _files(store / "consumequeue")
    if not files:
        return None
    file = chance.choice(files)
    written = len(file.read_bytes().rstrip(b"\0")) // _UNIT_SIZE + 1
    unit = max(0, written - 1 - chance.randrange(3)) if chance.random() < 0.3 else chance.randrange(written)
    field, size = chance.choice(_UNIT_FIELDS)
    return _write_number(chance, store, file, unit * _UNIT_SIZE + field, size)


def _write_number_of_index(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    files = _files(store / "index")
    return _write_number(chance, store, chance.choice(files), *chance.choice(_INDEX_FIELDS)) if files else None


def _write_number_of_checkpoint(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    file = store / "checkpoint"
    if not file.is_file():
        return None
    return _write_number(chance, store, file, *chance.choice(_CHECKPOINT_FIELDS))


def _overwrite(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    file = _file(chance, store)
    if file is None:
        return None
    at, size = _place(chance, file.read_bytes()), chance.choice((1, 4, 8, 20, 64, 300))
    _write(file, at, chance.randbytes(size))
    return f"wrote {size} random bytes into {_name(store, file)} at {at:,}"


def _zero(chance: random.Random, store: Path, records: Sequence[int]) -> str | None:
    file = _file(chance, store)
    if file is None:
        return None
    content = file.read_bytes()
    at = _place(chance, content)
    record = _record(chance, store, records) if chance.random() < 0.5 else None
    if record is not None:
        file, at = record
        content = file.read_bytes()
    elif chance.random() < 0.5:
        at = at // _UNIT_SIZE * _UNIT_SIZE
    size = chance.choice((1, 8, 20, 40, 100, 1000, len(content)))
    size = max(0, min(size, len(content) - at))
    _write(file, at, bytes(size))
    return f"zeroed {size} bytes of {_name(store, file)} from {at:,}"


def _truncate(chance: random.Random, store: Path, records: Sequence[int]) -> str | None:
    file = _file(chance, store)
    if file is None:
        return None
    content = file.read_bytes()
    size = chance.choice((chance.randrange(9), chance.randrange(len(content) + 1), _place(chance, content)))
    record = _record(chance, store, records) if chance.random() < 0.3 else None
    if record is not None:
        file, size = record
    os.truncate(file, size)
    filled = chance.random() < 0.3
    if filled:
        os.truncate(file, len(content))
    return f"cut {_name(store, file)} to {size:,} bytes{', and filled it with zeroes' if filled else ''}"


def _remove(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    file = _file(chance, store)
    if file is None:
        return None
    file.unlink()
    return f"removed {_name(store, file)}"


def _empty(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    file = _file(chance, store)
    if file is None:
        return None
    size = file.stat().st_size
    file.write_bytes(b"" if chance.random() < 0.6 else bytes(size))
    return f"emptied {_name(store, file)}, which has {file.stat().st_size:,} bytes"


def _copy_another(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    """Another file's content: an older file of the log, another queue's."""
    file = _file(chance, store)
    if file is None:
        return None
    kind = store / file.relative_to(store).parts[0]
    others = [other for other in (_files(kind) if kind.is_dir() else []) if other != file]
    if not others:
        return None
    other = chance.choice(others)
    content = file.read_bytes()
    at = 0 if chance.random() < 0.6 else _place(chance, content)
    _write(file, at, other.read_bytes()[at : len(content)])
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
    size = min(struct.unpack_from(">I", head)[0], len(head), 4096)
    _write(other[0], other[1], head[:size])
    return f"copied the record of {_name(store, one[0])} at {one[1]:,} to {_name(store, other[0])} at {other[1]:,}"


def _append(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    file = _file(chance, store)
    if file is None:
        return None
    size, zeroes = chance.choice((1, 7, 20, 100, 5000)), chance.random() < 0.4
    with file.open("ab") as opened:
        opened.write(bytes(size) if zeroes else chance.randbytes(size))
    return f"appended {size} {'zeroes' if zeroes else 'random bytes'} to {_name(store, file)}"


def _rename(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    file = _file(chance, store)
    if file is None:
        return None
    target = file.with_name(chance.choice(_NAMES))
    if target.exists():
        return None
    file.rename(target)
    return f"renamed {_name(store, file)} to {target.name}"


def _remove_directory(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    directory = _directory(chance, store)
    if directory is None:
        return None
    shutil.rmtree(directory)
    return f"removed {_name(store, directory)}"


def _directory(chance: random.Random, store: Path) -> Path | None:
    queues = [path for path in (store / "consumequeue").rglob("*") if path.is_dir() and not path.is_symlink()]
    others = [store / name for name in ("consumequeue", "index", "config", "commitlog")]
    found = sorted(queues) if queues and chance.random() < 0.85 else [path for path in others if path.is_dir()]
    return chance.choice(found) if found else None


def _link_nowhere(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    path = _file(chance, store) if chance.random() < 0.7 else _directory(chance, store)
    if path is None:
        return None
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    path.symlink_to(_NOWHERE)
    return f"made {_name(store, path)} a link that leads nowhere"


def _make_directory(chance: random.Random, store: Path, _: Sequence[int]) -> str | None:
    file = _file(chance, store)
    if file is None:
        return None
    file.unlink()
    file.mkdir()
    return f"made {_name(store, file)} a directory"


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
        content: Any = json.loads(file.read_bytes())
    except ValueError:
        return None
    places: list[tuple[Any, Any]] = []
    _collect(content, places)
    if not places:
        return None
    holder, key = chance.choice(places)
    value: Any = chance.choice((*_NUMBERS, None, "text", [], {}, 1.5, True, _NOWHERE))
    if value is _NOWHERE:
        del holder[key]
    else:
        holder[key] = value
    file.write_text(json.dumps(content))
    return f"edited {_name(store, file)}: {key!r} {'is gone' if value is _NOWHERE else f'is {value!r}'}"


def _collect(value: Any, places: list[tuple[Any, Any]]) -> None:
    """All places within a JSON value that can be set."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        places.append((value, key))
        _collect(inner, places)


def _name(store: Path, path: Path) -> str:
    return str(path.relative_to(store))


_Harm = Callable[[random.Random, Path, Sequence[int]], str | None]
_HARMS: tuple[tuple[_Harm, int], ...] = (
    (_flip_bit, 6),
    (_flip_bit_of_record, 8),
    (_write_number_of_record, 6),
    (_write_number_of_unit, 5),
    (_write_number_of_index, 1),
    (_write_number_of_checkpoint, 3),
    (_overwrite, 5),
    (_zero, 10),
    (_truncate, 8),
    (_remove, 6),
    (_empty, 5),
    (_copy_another, 5),
    (_exchange, 2),
    (_duplicate_record, 3),
    (_append, 3),
    (_rename, 2),
    (_remove_directory, 5),
    (_link_nowhere, 3),
    (_make_directory, 1),
    (_change_abort, 2),
    (_edit_config, 4),
)
