"""What the tests of the broker's control plane share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast.broker.metadata import Metadata
from tests.broker.certificates import authority, stranger
from tests.broker.control_plane import ControlPlane

__all__ = ["authority", "metadata", "offsets_store", "plane", "still", "stranger"]


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[Metadata]:
    """The metadata of an empty store."""
    metadata = Metadata(tmp_path)
    yield metadata
    metadata.close()


@pytest.fixture
def offsets_store(golden_store_copy: Callable[[str], Path]) -> Iterator[rmqfast.WritableStore]:
    """The golden store of consumer offsets, open for appending."""
    with rmqfast.open_store(golden_store_copy("offsets-4.9.4"), mode="a") as store:
        yield store


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane over an empty store."""
    plane = ControlPlane(tmp_path / "store")
    yield plane
    plane.close()


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane over an empty store, for tests that change nothing."""
    plane = ControlPlane(tmp_path_factory.mktemp("still") / "store")
    yield plane
    plane.close()
