"""Tables of options, as the code has them."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Iterator
from typing import Any

import griffe

from rmqfast import AppendOptions, ClientConfig, GetLimits, MirrorOptions, RetentionOptions
from rmqfast._native import SparkOptions
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.client.producer import ProducerOptions
from rmqfast.client.pull import PullOptions
from rmqfast.client.push import PushOptions, PushTimings
from rmqfast.remoting import TlsOptions

#: The classes of options, and where a reader passes them.
CLASSES: dict[type, str] = {
    ClientConfig: "Of every client: `config=ClientConfig(...)`.",
    TlsOptions: "`ClientConfig(tls=TlsOptions(...))`.",
    ProducerOptions: "`Producer(..., options=ProducerOptions(...))`.",
    PushOptions: "`PushConsumer(..., options=PushOptions(...))`, or its arguments; Java's units.",
    PushTimings: "`PushConsumer(..., timings=PushTimings(...))`.",
    LitePullOptions: "`LitePullConsumer(..., options=LitePullOptions(...))`.",
    PullOptions: "`PullConsumer(..., options=PullOptions(...))`.",
    AppendOptions: '`open_store(path, mode="a", options=AppendOptions(...))`, `store.export(..., options=...)`.',
    RetentionOptions: '`open_store(path, mode="a", retention=RetentionOptions(...))`.',
    GetLimits: "`store.get(..., limits=GetLimits(...))`.",
    MirrorOptions: "`Mirror(..., options=MirrorOptions(...))`.",
}
#: What Spark reads or writes, and the page that says what its options mean.
SPARK_KINDS = {
    "store batch": "[a store](../spark.md#arguments-and-options)",
    "topic batch": "[live topics](../spark-live.md#options)",
    "sink": "[writing](../spark-sink.md#options)",
}

_HEAD = """# Options

Defaults and meanings, out of the code. Every class is frozen, and checks its values when you make one.
"""
_HEAD_OF_SPARK = """# Options of Spark

Names are case-insensitive. An option that a read or a write does not have is an error that lists those that it has. The
pages in the head of the table say what each option means there. The argument is that of `rmqfast.spark`'s functions, as
far as they have it.
"""


def of_classes() -> str:
    """A table for each class of options."""
    parts = [_HEAD]
    for kind, place in CLASSES.items():
        rows = "".join(f"| `{name}` | {default} | {text} |\n" for name, default, text in _fields(kind))
        parts.append(f"## {kind.__name__}\n\n{place}\n\n| option | default | meaning |\n| --- | --- | --- |\n{rows}")
    return "\n".join(parts)


def of_spark() -> str:
    """Which option is of which read or write of Spark."""
    names = {kind: {_key(name) for name in SparkOptions.names(kind)} for kind in SPARK_KINDS}
    arguments = {option: argument for kind in SPARK_KINDS for option, argument in SparkOptions.arguments(kind)}
    options = {_key(name): name for kind in SPARK_KINDS for name in SparkOptions.names(kind)}
    rows = [
        f"| `{name}` | {f'`{arguments[name]}`' if name in arguments else 'another name'} | "
        + " | ".join("yes" if key in names[kind] else "" for kind in SPARK_KINDS)
        + " |\n"
        for key, name in sorted(options.items())
    ]
    head = " | ".join(SPARK_KINDS.values())
    return f"{_HEAD_OF_SPARK}\n| option | in Python | {head} |\n| --- | --- | --- | --- | --- |\n{''.join(rows)}"


def _key(name: str) -> str:
    return name.lower()


def _fields(kind: type) -> Iterator[tuple[str, str, str]]:
    """Name, default and meaning of each option."""
    meanings = _meanings(kind)
    for field in dataclasses.fields(kind):
        yield field.name, _default(field), meanings[field.name].replace("|", "\\|")


def _meanings(kind: type) -> dict[str, str]:
    """The text of each option in the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__[:-1]):
        for section in griffe.Docstring(inspect.getdoc(one) or "").parse("google", warnings=False):
            if section.kind.value in {"attributes", "parameters"}:
                found.update({item.name: " ".join(item.description.split()) for item in section.value})
    return found


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return _shown(field.default)
    return "computed" if field.default_factory is not dataclasses.MISSING else "required"


def _shown(value: object) -> str:
    if isinstance(value, frozenset):
        return ", ".join(f"`{one}`" for one in sorted(value))
    if isinstance(value, int) and value >= 1 << 20 and value % (1 << 20) == 0:
        return f"{value >> 20} MiB"
    if isinstance(value, enum.Enum):
        return f"`{value.value}`"
    if isinstance(value, float) or type(value) is int:
        return f"`{value:,}`".replace(".0`", "`")
    return f"`{value!r}`"
