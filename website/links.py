"""Links of pages to files outside of `docs/`: in the repository they work as they are, on the site they lead there."""

from __future__ import annotations

import re
from pathlib import Path

_LINK = re.compile(r"(?<=\]\()(\.\./[^)\s#]*)(#[^)\s]*)?(?=\))")


def with_repository_links(markdown: str, root: Path, page: Path, repository: str) -> tuple[str, list[str]]:
    """A page whose links to files outside of `docs/` are those of the repository, and the links that lead nowhere.

    Args:
        markdown: The page.
        root: The root of the repository.
        page: The page's file.
        repository: The address of the repository, without a slash at its end.
    """
    missing = []

    def replaced(link: re.Match[str]) -> str:
        target = (page.parent / link[1]).resolve()
        if target.is_relative_to(root / "docs"):
            return link[0]
        if not target.exists():
            missing.append(link[1])
        kind = "tree" if target.is_dir() else "blob"
        return f"{repository}/{kind}/main/{target.relative_to(root).as_posix()}{link[2] or ''}"

    return _LINK.sub(replaced, markdown), missing
