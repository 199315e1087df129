"""Bodies as clients compress them: sysFlag bit 0x1 says that, bits 0x700 how.

Source: CompressionType.findByValue, ZlibCompressor, Lz4Compressor, ZstdCompressor.
"""

from __future__ import annotations

import zlib

import lz4.frame  # type: ignore[import-untyped]
import zstandard

COMPRESSED = 0x1
TYPE_MASK = 0x700
LZ4, ZSTD, ZLIB = 0x100, 0x200, 0x300


def compress(body: bytes, kind: str) -> tuple[bytes, int]:
    """The stored body and the sysFlag bits that go with it; `kind` is lz4, zstd or zlib."""
    if kind == "lz4":
        return lz4.frame.compress(body), COMPRESSED | LZ4
    if kind == "zstd":
        return zstandard.ZstdCompressor(level=3).compress(body), COMPRESSED | ZSTD
    return zlib.compress(body, 5), COMPRESSED | ZLIB


def decompress(stored: bytes, sys_flag: int) -> bytes:
    """The body that the producer sent. Type 0 is ZLIB as well: clients before 4.9 had no type bits."""
    if not sys_flag & COMPRESSED:
        return stored
    kind = sys_flag & TYPE_MASK
    if kind == LZ4:
        return bytes(lz4.frame.decompress(stored))
    if kind == ZSTD:
        return zstandard.ZstdDecompressor().decompressobj().decompress(stored)
    if kind in (0, ZLIB):
        return zlib.decompress(stored)
    raise ValueError(f"unknown compression type in sysFlag {sys_flag:#x}")
