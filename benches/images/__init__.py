"""The pictures of `docs/images`, each for a light and a dark page."""

from images.architecture import architecture
from images.speed import in_words, speed
from images.svg import PALETTES


def drawn() -> dict[str, str]:
    """Each picture's file name and content."""
    pictures = {"architecture": architecture, "speed": speed}
    return {
        f"{name}-{mode}.svg": draw(palette) for name, draw in pictures.items() for mode, palette in PALETTES.items()
    }


__all__ = ["drawn", "in_words"]
