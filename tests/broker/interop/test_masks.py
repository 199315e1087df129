"""What is masked does not depend on how long the machine has run, which client ids tell in nanoseconds."""

from __future__ import annotations

import pytest

from tests.broker.interop import masks


@pytest.mark.parametrize("uptime", [999, 1_795, 20_880, 2_087_900], ids="{} s".format)
def test_a_client_id_is_masked_however_long_the_machine_has_run(uptime: int) -> None:
    said = f"0001  192.0.2.2@4711#{uptime}000000123  127.0.0.1:4711  JAVA  V4_9_4"
    assert (
        masks.printed(masks.text(said)) == masks.text(masks.printed(said)) == "0001  <client>  <address>  JAVA  V4_9_4"
    )
