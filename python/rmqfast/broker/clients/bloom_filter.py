"""Computes the Bloom filter positions of a subscription, which stand in `consumerFilter.json`.

Source: `BloomFilter.calcBitPositions`; Guava's `murmur3_128` below it.
"""

from __future__ import annotations

BITS = 112
HASHES = 3

_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_LONG = (1 << 64) - 1
_INT = (1 << 32) - 1


def bit_positions(text: str, *, bits: int = BITS, hashes: int = HASHES) -> list[int]:
    """The bits that a text sets.

    Args:
        text: `group#topic`.
        bits: Bits of the filter: 112 for 32 groups of which 20 % may be mistaken, as a broker is configured.
        hashes: Bits that a text sets.

    Example:
        >>> bit_positions("g#t")
        [22, 87, 58]
    """
    # RocketMQ takes the lower 64 bits (`asLong`) as two ints; a negative sum is inverted
    low_half = murmur3_128(text.encode())
    first, second = low_half & _INT, low_half >> 32
    positions = []
    for turn in range(1, hashes + 1):
        combined = (first + turn * second) & _INT
        positions.append((combined ^ _INT if combined >> 31 else combined) % bits)
    return positions


def murmur3_128(data: bytes) -> int:
    """The lower 64 of the 128 bits of the hash with seed 0."""
    low = high = 0
    blocks_end = len(data) // 16 * 16
    for start in range(0, blocks_end, 16):
        low ^= _mixed_low(int.from_bytes(data[start : start + 8], "little"))
        low = ((_rotated(low, 27) + high) * 5 + 0x52DCE729) & _LONG
        high ^= _mixed_high(int.from_bytes(data[start + 8 : start + 16], "little"))
        high = ((_rotated(high, 31) + low) * 5 + 0x38495AB5) & _LONG
    tail = data[blocks_end:]
    low ^= _mixed_low(int.from_bytes(tail[:8], "little")) ^ len(data)
    high ^= _mixed_high(int.from_bytes(tail[8:], "little")) ^ len(data)
    low = (low + high) & _LONG
    high = (high + low) & _LONG
    return (_final(low) + _final(high)) & _LONG


def _mixed_low(word: int) -> int:
    return _rotated(word * _C1 & _LONG, 31) * _C2 & _LONG


def _mixed_high(word: int) -> int:
    return _rotated(word * _C2 & _LONG, 33) * _C1 & _LONG


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _LONG


def _final(word: int) -> int:
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & _LONG
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & _LONG
    return word ^ word >> 33
