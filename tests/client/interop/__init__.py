"""Plays are asserts outside of test modules: they say what they saw, too."""

import pytest

_PLAYS = ("scene", "processes", "churn", "faults", "mixed_groups", "worked_scenarios", "offsets", "delivery")
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _PLAYS))
