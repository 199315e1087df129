"""Draws an SVG with shapes and text, readable on light and on dark pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

#: The picture has a ground of its own, so that it is readable whatever is behind it.
_STYLE = """
  .ground { fill: #ffffff; stroke: #c7ccd6; }
  text { fill: #1f2733; font: 13px system-ui, sans-serif; }
  .small { font-size: 12px; fill: #4a5464; }
  .bold { font-weight: 600; }
  .center { text-anchor: middle; }
  .end { text-anchor: end; }
  .on { fill: #ffffff; }
  .cell { stroke: #ffffff; }
  .line { stroke: #4a5464; stroke-width: 1.5; fill: none; }
  .none { fill: #e3e7ee; }
  .c0 { fill: #2f5fd0; } .c1 { fill: #b3470b; } .c2 { fill: #1c7a4c; } .c3 { fill: #7a3db8; }
  .lost { fill: #b3261e; } .done { fill: #1c7a4c; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1e2129; stroke: #3a4050; }
    text { fill: #e6e9f0; } .small { fill: #b4bccb; } .on { fill: #ffffff; }
    .cell { stroke: #1e2129; } .line { stroke: #b4bccb; } .none { fill: #363c4a; }
  }
"""


@dataclass
class Drawing:
    """An SVG that grows as shapes are added; coordinates are pixels from the upper left.

    Attributes:
        title: What a screen reader says of the whole picture.
        width: Pixels.
        height: Pixels.
    """

    title: str
    width: int
    height: int
    _parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, kind: str = "") -> None:
        """Words at a point; `kind` is one or several of small, bold, center, end, on."""
        self._parts.append(f'<text x="{x:g}" y="{y:g}"{_of(kind)}>{escape(words)}</text>')

    def box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A filled rectangle; `kind` is its colour: none, c0 to c3, lost, done."""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="cell {kind}" rx="3"/>'
        )

    def arrow(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """A line that ends in an arrow."""
        self._parts.append(f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" class="line" marker-end="url(#tip)"/>')

    def svg(self) -> str:
        """The whole file."""
        parts = "\n".join(self._parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img" aria-label="{escape(self.title)}">\n<style>{_STYLE}</style>\n'
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8Z" fill="#808a9a"/></marker></defs>\n'
            f'<rect class="ground" x=".5" y=".5" width="{self.width - 1}" height="{self.height - 1}" rx="8"/>\n'
            f"{parts}\n</svg>\n"
        )


def _of(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
