"""Recordings of real clusters below tests/golden/broker."""

from __future__ import annotations

import gzip
import json
from typing import Any

from .cluster import ROOT

GOLDEN = ROOT / "tests/golden/broker"


def golden(name: str) -> Any:
    with gzip.open(GOLDEN / f"{name}.json.gz", "rt") as file:
        return json.load(file)


def keep(name: str, value: Any) -> None:
    """Writes a recording; equal recordings are equal files."""
    GOLDEN.mkdir(exist_ok=True)
    text = json.dumps(value, indent=0, ensure_ascii=False)
    with (GOLDEN / f"{name}.json.gz").open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write(text.encode())
