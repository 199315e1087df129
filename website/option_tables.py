"""Tables of options, as the code has them."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

from rmqfast import AppendOptions, ClientConfig, GetLimits, MirrorOptions, RetentionOptions
from rmqfast._native import SparkOptions
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.client.producer import ProducerOptions
from rmqfast.client.pull import PullOptions
from rmqfast.client.push import PushOptions, PushTimings
from rmqfast.remoting import TlsOptions

ROOT = Path(__file__).parents[1]
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
pages in the last column say more. The argument is that of `rmqfast.spark`'s functions, as far as they have it.
"""
#: The table of the options, from which the extension is compiled.
_DECLARATIONS = ROOT / "rust" / "spark" / "src" / "request" / "options.rs"
_ALIAS = re.compile(r'with_alias\("(\w+)", row\("(\w+)"')
_ROW = re.compile(r'row\("(\w+)", "\w+", [A-Z_ |]+, ([\w:]+)(.*), (?:None|Some\("(.*)"\))\)+,')
_TYPES = {
    "Text": "text",
    "Topic": "text",
    "OneTopic": "text",
    "Flag": "true, false",
    "Number": "number",
    "COUNT": "number",
    "BODY_BYTES": "bytes",
    "MILLISECONDS": "milliseconds",
    "Time": "time",
    "Texts": "list",
    "Ids": "numbers",
}


def of_classes() -> str:
    """A table for each class of options."""
    parts = [_HEAD]
    for kind, place in CLASSES.items():
        rows = "".join(f"| `{name}` | {default} | {text} |\n" for name, default, text in _fields(kind))
        parts.append(f"## {kind.__name__}\n\n{place}\n\n| option | default | meaning |\n| --- | --- | --- |\n{rows}")
    return "\n".join(parts)


def of_spark() -> str:
    """Type, default and meaning of each option of Spark.

    Raises:
        ValueError: An option has no type in the table of the extension, or no meaning on a page.
    """
    names = {kind: {_key(name) for name in SparkOptions.names(kind)} for kind in SPARK_KINDS}
    arguments = {option: argument for kind in SPARK_KINDS for option, argument in SparkOptions.arguments(kind)}
    options = {_key(name): name for kind in SPARK_KINDS for name in SparkOptions.names(kind)}
    (types, defaults), aliases = _declared(), dict(_ALIAS.findall(_DECLARATIONS.read_text(encoding="utf-8")))
    described = {kind: _described(page) for kind, page in SPARK_KINDS.items()}
    rows = []
    for key, name in sorted(options.items()):
        kinds = [kind for kind in SPARK_KINDS if key in names[kind]]
        # a row of fewer options says more of each
        texts = sorted((described[kind][name] for kind in kinds if name in described[kind]), key=lambda text: text[0])
        default = defaults.get(name) or _joined([text[1] for text in texts])
        meaning = next((text[2] for text in texts if text[2] not in {"", "see below"}), "")
        if name in aliases:
            meaning, default = f"another name of `{aliases[name]}`", ""
        argument = f"`{arguments[name]}`" if name in arguments else ""
        pages = ", ".join(SPARK_KINDS[kind] for kind in kinds)
        form = types.get(aliases.get(name, name))
        if not (form and meaning):
            raise ValueError(f"option {name} of Spark: expected a type and a meaning, got {form!r} and {meaning!r}")
        rows.append(f"| `{name}` | {argument} | {form} | {default} | {meaning} | {pages} |\n")
    head = "| option | in Python | type | default | meaning | of |\n| --- | --- | --- | --- | --- | --- |\n"
    return f"{_HEAD_OF_SPARK}\n{head}{''.join(rows)}"


def _declared() -> tuple[dict[str, str], dict[str, str]]:
    """Types and defaults by name, out of the table of the extension; a default that depends on the read is left out."""
    types: dict[str, str] = {}
    defaults: dict[str, set[str]] = {}
    for name, form, rest, default in _ROW.findall(_DECLARATIONS.read_text(encoding="utf-8")):
        choices = ", ".join(f"`{choice}`" for choice in re.findall(r'"([\w-]+)"', rest))
        types[name] = choices or _TYPES[form.removeprefix("Form::")]
        defaults.setdefault(name, set()).add(_shown(int(default)) if default.isdecimal() else f"`{default}`")
    return types, {name: each.pop() for name, each in defaults.items() if len(each) == 1 and each != {"``"}}


def _described(link: str) -> dict[str, tuple[int, str, str]]:
    """By name, out of the table of a page: how many options share the row, the default and the meaning."""
    page = link.partition("(../")[2].partition("#")[0]
    described: dict[str, tuple[int, str, str]] = {}
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 4:
            continue
        names = re.findall(r"`(\w+)", cells[1])
        each = cells[2].split(", ")
        for index, name in enumerate(names):
            default = each[index] if len(each) == len(names) else cells[2] if 1 in {len(names), len(each)} else ""
            meaning = re.sub(r"\[([^\]]*)\]\([^)]*\)|:? (?:see|as) below", r"\1", cells[3])
            described.setdefault(name, (len(names), "" if default == "none" else default, meaning))
    return described


def _joined(defaults: list[str]) -> str:
    """Different defaults, without those that are the beginning of another."""
    plain = [re.sub(r"(?<=\d),(?=\d)", "", default) for default in defaults]
    kept = [one for one in dict.fromkeys(plain) if not any(other != one and other.startswith(one) for other in plain)]
    return "; ".join(kept)


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
