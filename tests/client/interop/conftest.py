"""The clusters that plays are given on, and the plays, many at a time: most of them wait for timers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

AT_A_TIME = 5


@pytest.fixture(scope="session")
def given(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[None]]]:
    """How the plays of a cluster end that were asked for, by their names."""
    from .scene import scene
    from .test_plays import PLAYS

    specs = [spec.params for item in request.session.items if (spec := getattr(item, "callspec", None)) is not None]
    chosen = [params["play"] for params in specs if params.get("given") == request.param]
    with scene(request.param, tmp_path_factory.mktemp("scene")) as ours, ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {name: pool.submit(PLAYS[name], ours) for name in chosen}
