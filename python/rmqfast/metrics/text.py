"""Writes metrics in the text format of Prometheus.

Source: `exposition_formats` of Prometheus, version 0.0.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate

from rmqfast.metrics.family import Family, Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def write_text(families: Iterable[Family], labels: Mapping[str, str] | None = None) -> str:
    """Returns families as text. Those without samples are left out. `labels` are added to each sample.

    Example:
        >>> from rmqfast.metrics import Kind, Sample
        >>> held = Family("rmqfast_held_pulls", Kind.GAUGE, "Pulls that wait.", ("topic",), [Sample(("orders",), 3)])
        >>> print(write_text([held], {"cluster": "c"}), end="")
        # HELP rmqfast_held_pulls Pulls that wait.
        # TYPE rmqfast_held_pulls gauge
        rmqfast_held_pulls{cluster="c",topic="orders"} 3
    """
    common = "".join(f'{name}="{_escape(value)}",' for name, value in (labels or {}).items())
    lines = [line for family in families if family.samples for line in _lines(family, common)]
    return "".join(lines)


def _lines(family: Family, common: str) -> Iterator[str]:
    name, names = family.name, family.labels
    text = family.help.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {name} {text}\n# TYPE {name} {family.kind.value}\n"
    for sample in family.samples:
        pairs = common + "".join(
            [f'{key}="{_escape(value)}",' for key, value in zip(names, sample.labels, strict=True)]
        )
        if isinstance(sample, Histogram):
            counts = list(accumulate(sample.counts))
            bounds = [*map(_number, sample.bounds), "+Inf"]
            for bound, count in zip(bounds, counts, strict=True):
                yield f'{name}_bucket{{{pairs}le="{bound}"}} {count}\n'
            yield f"{name}_count{_braces(pairs)} {counts[-1]}\n"
        else:
            yield f"{name}{_braces(pairs)} {_number(sample.value)}\n"


def _braces(pairs: str) -> str:
    return f"{{{pairs[:-1]}}}" if pairs else ""


def _number(value: float) -> str:
    # Prometheus also reads Python's words for what is no number.
    return str(value).removesuffix(".0")


@lru_cache(maxsize=1 << 16)
def _escape(value: str) -> str:
    # Names come from clients; half of a surrogate pair has no UTF-8.
    text = value.encode("utf-8", "replace").decode()
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
