"""A page's images: their sizes, so that the text below them does not move once they are loaded, and dark ones."""

from __future__ import annotations

import re
import struct
from itertools import count
from pathlib import Path
from urllib.parse import urljoin, urlsplit

_IMAGE = re.compile(r'<img [^>]*?\bsrc="([^"]+)"')
_LIGHT = re.compile(r'<img [^>]*?\bsrc="[^"]+-light\.(svg|png)"[^>]*>')
_SIZE = re.compile(rb'<svg [^>]*?\bwidth="(\d+)" height="(\d+)"')
#: The beginning of a PNG: its signature, and the length and name of the part with its size.
_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"


def with_image_sizes(html: str, docs: Path, url: str) -> str:
    """A page whose images have the width and the height of their files.

    All but the first image are loaded when they come into sight.

    Args:
        html: The page, as it was made of its text.
        docs: The folder of the images: SVG or PNG files.
        url: Where the page stands on the site, in its language.
    """
    number = count()

    def sized(image: re.Match[str]) -> str:
        path = urlsplit(urljoin(f"/{url}", image[1])).path.lstrip("/")
        width, height = _size_of(docs / path)
        later = ' loading="lazy"' if next(number) else ""
        return f'{image[0]} width="{width}" height="{height}"{later}'

    return _IMAGE.sub(sized, html)


def _size_of(path: Path) -> tuple[int, int]:
    content = path.read_bytes()
    if content.startswith(_PNG):
        width, height = struct.unpack_from(">II", content, len(_PNG))
        return width, height
    size = _SIZE.match(content)
    if size is None:
        raise ValueError(f"{path}: an image without width and height")
    return int(size[1]), int(size[2])


def with_dark_images(html: str) -> str:
    """A page that has, for each image `NAME-light.svg`, also the one named `NAME-dark.svg`; the theme shows one."""
    return _LIGHT.sub(lambda image: f"{_only(image, 'light')}\n{_only(image, 'dark')}", html)


def _only(image: re.Match[str], scheme: str) -> str:
    return image[0].replace(f"-light.{image[1]}", f"-{scheme}.{image[1]}#only-{scheme}")
