"""`config/*.json` in fastjson's dialect: tabs, and integer keys without quotes on one line.

This is what 4.9 to 5.3 write; 5.4 has fastjson 2, whose spaces differ and whose text `loads` reads as well.
Keys that were unquoted come back as `int`, and `dumps` writes them so again. Source: RemotingSerializable.toJson.
"""

from __future__ import annotations

import json
import re

Value = None | bool | int | float | str | list["Value"] | dict[str | int, "Value"]

_INTEGER_KEY = re.compile(r'"(?:[^"\\]|\\.)*"|([{,]\s*)(-?\d+)(?=\s*:)')
# no string of a store begins with it: a lone surrogate cannot be written as UTF-8
_MARK = "\udc00"


def loads(text: str) -> Value:
    """What the text says; `{0:5}` gives `{0: 5}`, `{"0":5}` gives `{"0": 5}`."""
    quoted = _INTEGER_KEY.sub(lambda m: m[0] if m[2] is None else f'{m[1]}"{_MARK}{m[2]}"', text)
    return _unmark(json.loads(quoted))


def dumps(value: Value, indent: int = 0) -> str:
    """The text that a broker writes for `value`; the order of the keys is the order of the dict."""
    if isinstance(value, dict) and value:
        return _dump_dict(value, indent)
    if isinstance(value, list):
        return "[" + ",".join(dumps(item, indent + 1) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _dump_dict(value: dict[str | int, Value], indent: int) -> str:
    parts = []
    for key, item in value.items():
        name = str(key) if isinstance(key, int) else "\n" + "\t" * (indent + 1) + json.dumps(key, ensure_ascii=False)
        parts.append(f"{name}:{dumps(item, indent + 1)}")
    return "{" + ",".join(parts) + "\n" + "\t" * indent + "}"


def _unmark(value: object) -> Value:
    if isinstance(value, dict):
        return {_key(key): _unmark(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unmark(item) for item in value]
    assert value is None or isinstance(value, bool | int | float | str)
    return value


def _key(key: str) -> str | int:
    return int(key[1:]) if key.startswith(_MARK) else key
