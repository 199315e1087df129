"""Avro's binary encoding, plainly: values to bytes and back. Names of types are not resolved."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any


class NotAvro(Exception):
    """Bytes that the schema does not have."""


def zigzag(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def encode(schema: Any, value: Any) -> bytes:  # noqa: C901, PLR0911, PLR0912 - one line a type
    match schema:
        case "null":
            return b""
        case "boolean":
            return bytes([value])
        case "int" | "long":
            return zigzag(value)
        case "float":
            return struct.pack("<f", value)
        case "double":
            return struct.pack("<d", value)
        case "bytes":
            return zigzag(len(value)) + bytes(value)
        case "string":
            return encode("bytes", value.encode())
        case {"type": "int" | "long" | "bytes" | "string" as plain, "logicalType": _}:
            return encode(plain, value)
        case list():
            at = 0 if value is None else 1
            return zigzag(at) + encode(schema[at], value)
        case {"type": "enum", "symbols": symbols}:
            return zigzag(symbols.index(value))
        case {"type": "fixed"}:
            return bytes(value)
        case {"type": "array", "items": items}:
            return _blocks([encode(items, each) for each in value])
        case {"type": "map", "values": values}:
            return _blocks([encode("string", key) + encode(values, each) for key, each in value.items()])
        case {"type": "record", "fields": fields}:
            return b"".join(encode(field["type"], value[field["name"]]) for field in fields)
    raise ValueError(schema)


def _blocks(items: list[bytes]) -> bytes:
    """The first block has a size, as a negative count says; the rest has none."""
    out, half = b"", len(items) // 2
    if half:
        block = b"".join(items[:half])
        out += zigzag(-half) + zigzag(len(block)) + block
    if items[half:]:
        out += zigzag(len(items[half:])) + b"".join(items[half:])
    return out + b"\0"


def decode(schema: Any, body: bytes) -> Any:
    """The value that takes all bytes."""
    reader = _Reader(body)
    value = reader.value(schema)
    if reader.at != len(body):
        raise NotAvro
    return value


@dataclass
class _Reader:
    body: bytes
    at: int = 0

    def value(self, schema: Any) -> Any:  # noqa: C901, PLR0911, PLR0912 - one line a type
        match schema:
            case "null":
                return None
            case "boolean":
                # as the specification has it: a reader of Avro's own takes other bytes for one of the two
                if (byte := self.take(1)) not in (b"\0", b"\1"):
                    raise NotAvro
                return byte == b"\1"
            case "int":
                return self.integer(32)
            case "long":
                return self.integer(64)
            case "float":
                return struct.unpack("<f", self.take(4))[0]
            case "double":
                return struct.unpack("<d", self.take(8))[0]
            case "bytes":
                return self.take(self.integer(64))
            case "string":
                try:
                    return self.value("bytes").decode()
                except UnicodeDecodeError:
                    raise NotAvro from None
            case list():
                return self.value(self.one_of(schema))
            case {"type": "enum", "symbols": symbols}:
                return self.one_of(symbols)
            case {"type": "fixed", "size": size}:
                return self.take(size)
            case {"type": "array", "items": items}:
                return self.blocks(lambda: self.value(items))
            case {"type": "map", "values": values}:
                return self.blocks(lambda: (self.value("string"), self.value(values)))
            case {"type": "record", "fields": fields}:
                return {field["name"]: self.value(field["type"]) for field in fields}
        raise ValueError(schema)

    def blocks(self, item: Any) -> list[Any]:
        values: list[Any] = []
        while count := self.integer(64):
            size = self.integer(64) if count < 0 else None
            start = self.at
            # each item takes a byte at least
            if abs(count) > len(self.body) - start:
                raise NotAvro
            values += [item() for _ in range(abs(count))]
            if size not in (None, self.at - start):
                raise NotAvro
        return values

    def one_of(self, choices: list[Any]) -> Any:
        at = self.integer(64)
        if not 0 <= at < len(choices):
            raise NotAvro
        return choices[at]

    def integer(self, bits: int) -> int:
        value = 0
        for shift in range(0, 70, 7):
            [byte] = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            raise NotAvro
        if value >= 1 << bits:
            raise NotAvro
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.body) - self.at:
            raise NotAvro
        self.at += size
        return self.body[self.at - size : self.at]
