"""A page's images: their sizes, so that the text below them does not move once they are loaded, and dark ones."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from urllib.parse import urljoin, urlsplit

_IMAGE = re.compile(r'<img [^>]*?\bsrc="([^"]+)"')
_LIGHT = re.compile(r'<img [^>]*?\bsrc="[^"]+-light\.svg"[^>]*>')
_SIZE = re.compile(r'<svg [^>]*?\bwidth="(\d+)" height="(\d+)"')


def with_image_sizes(html: str, docs: Path, url: str) -> str:
    """A page whose images have the width and the height of their files.

    All but the first image are loaded when they come into sight.

    Args:
        html: The page, as it was made of its text.
        docs: The folder of the images: SVG files.
        url: Where the page stands on the site, in its language.
    """
    number = count()

    def sized(image: re.Match[str]) -> str:
        path = urlsplit(urljoin(f"/{url}", image[1])).path.lstrip("/")
        size = _SIZE.match((docs / path).read_text(encoding="utf-8"))
        if size is None:
            raise ValueError(f"{path}: an image without width and height")
        later = ' loading="lazy"' if next(number) else ""
        return f'{image[0]} width="{size[1]}" height="{size[2]}"{later}'

    return _IMAGE.sub(sized, html)


def with_dark_images(html: str) -> str:
    """A page that has, for each image `NAME-light.svg`, also the one named `NAME-dark.svg`; the theme shows one."""
    return _LIGHT.sub(lambda image: f"{_only(image[0], 'light')}\n{_only(image[0], 'dark')}", html)


def _only(image: str, scheme: str) -> str:
    return image.replace("-light.svg", f"-{scheme}.svg#only-{scheme}")
