"""What the tests of the broker's control plane share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.control_plane import ControlPlane
from tests.remoting.patient import patient_clients

__all__ = ["patient_clients", "plane", "still"]


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
