"""Fixtures of the tests of whole clusters."""

from __future__ import annotations

import pytest

from rmqfast.broker import housekeeping

__all__ = ["early_deliveries"]


@pytest.fixture
def early_deliveries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker looks for delayed messages that are due as soon as it runs."""
    monkeypatch.setattr(housekeeping, "FIRST_DELIVERY", 0.0)
