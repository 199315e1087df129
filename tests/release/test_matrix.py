"""Which installer puts the wheel on which machine; `make release` runs the machines themselves."""

from __future__ import annotations

import pytest

from .matrix import MACHINES, READERS, Machine, installer


@pytest.mark.parametrize("machine", [*MACHINES, *READERS], ids=lambda machine: machine.root.name)
def test_every_machine_has_an_installer_that_is_told_of_it(machine: Machine) -> None:
    words = installer(machine)
    processor, _, _ = machine.platform.partition("-")
    assert processor == machine.root.processor
    if machine.is_free_threaded:
        assert f"--abi=cp{machine.python.replace('.', '')}" in words
        assert f"--platform=manylinux_2_17_{processor}" in words
    else:
        assert words[words.index("--python-platform") + 1] == machine.platform
        assert words[words.index("--python-version") + 1] == machine.python
