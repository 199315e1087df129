"""The attacks in small: what they must not break, whatever the machine's speed."""

from __future__ import annotations

import pytest

from tests.attack.__main__ import run
from tests.attack.attacks import ATTACKS, Attack
from tests.attack.figures import SHORT


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if attack.is_quick], ids=lambda attack: attack.name)
def test_an_attack_breaks_nothing(attack: Attack) -> None:
    figures = run(attack, SHORT, real=False)
    assert figures
    assert [figure for figure in figures if not (figure.is_time or figure.is_met)] == []
