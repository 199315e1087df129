"""Elements of an SVG, and the colours of light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Palette:
    """Colours. Text has a contrast of 4.5 and more to what is behind it, bars and lines of 3 (WCAG 2.1, AA)."""

    page: str
    text: str
    muted: str
    line: str
    grid: str
    box: str
    ours: str
    peer: str


PALETTES = {
    "light": Palette(
        page="#ffffff",
        text="#1f2328",
        muted="#57606a",
        line="#6e7781",
        grid="#d8dee4",
        box="#f6f8fa",
        ours="#0b62c4",
        peer="#7d8590",
    ),
    "dark": Palette(
        page="#0d1117",
        text="#e6edf3",
        muted="#9aa4af",
        line="#8b949e",
        grid="#30363d",
        box="#161b22",
        ours="#4f9ff5",
        peer="#848d97",
    ),
}


def document(size: tuple[int, int], title: str, description: str, colours: Palette, parts: Sequence[str]) -> str:
    """A whole file; screen readers have the title and the description."""
    width, height = size
    style = (
        f"text {{ font-family: {FONT}; font-size: 13px; fill: {colours.text}; }}"
        f" .title {{ font-weight: 600; font-size: 14px; }} .small {{ font-size: 12px; fill: {colours.muted}; }}"
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' role="img" aria-labelledby="title description">'
    )
    lines = [
        head,
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="description">{escape(description)}</desc>',
        f"<style>{style}</style>",
        rectangle(0, 0, width, height, colours.page),
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def text(x: float, y: float, content: str, *, style: str = "", anchor: str = "start") -> str:
    """A line of text; `y` is its base line."""
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{kind}>{escape(content)}</text>'


def rectangle(x: float, y: float, width: float, height: float, fill: str, *, line: str = "", round_: int = 0) -> str:
    """A filled rectangle, with an outline if a colour is given."""
    outline = f' stroke="{line}" stroke-width="1.5"' if line else ""
    corners = f' rx="{round_}"' if round_ else ""
    place = f'x="{x:g}" y="{y:g}" width="{width:.4g}" height="{height:g}"'
    return f'<rect {place}{corners} fill="{fill}"{outline}/>'


def stroke(points: str, colour: str, *, ends: str = "") -> str:
    """A line along the points of a path; `ends` are attributes, such as arrow heads."""
    return f'<path d="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{ends}/>'
