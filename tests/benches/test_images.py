"""The pictures with a light and a dark face are readable: by screen readers, and in their colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "images"
IMAGES = sorted(path for mode in ("light", "dark") for path in FOLDER.glob(f"*-{mode}.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.1."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def rectangles(image: ET.Element) -> Iterator[tuple[str, bool]]:
    """Fills, and whether text may stand on them: a bar has no outline."""
    for number, one in enumerate(image.iter(f"{SVG}rect")):
        yield one.attrib["fill"], number == 0 or "stroke" in one.attrib


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.name)
def test_a_picture_has_words_for_screen_readers_and_contrast(path: Path) -> None:
    image = ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 - our own file
    assert image.findtext(f"{SVG}title")
    assert len(image.findtext(f"{SVG}desc") or "") > 100
    page, *_ = [fill for fill, _ in rectangles(image)]
    behind_text = {fill for fill, may in rectangles(image) if may}
    bars = {fill for fill, may in rectangles(image) if not may}
    texts = set(re.findall(r"fill: (#\w{6})", image.findtext(f"{SVG}style") or ""))
    lines = {one.attrib["stroke"] for one in image.iter(f"{SVG}rect") if "stroke" in one.attrib}
    assert texts
    assert [pair for pair in product(texts, behind_text) if contrast(*pair) < 4.5] == []
    assert [colour for colour in bars | lines if contrast(colour, page) < 3] == []


def test_each_picture_is_there_for_light_and_for_dark_pages() -> None:
    modes = {
        mode: {path.stem.removesuffix(mode) for path in IMAGES if path.stem.endswith(mode)}
        for mode in ("light", "dark")
    }
    assert modes["light"] == modes["dark"] == {"architecture-", "speed-"}
