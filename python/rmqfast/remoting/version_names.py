"""Names of RocketMQ's releases, of which clients and brokers tell the ordinal.

Source: `MQVersion`.
"""

from __future__ import annotations

_FIRST = (
    "SNAPSHOT",
    "ALPHA1",
    "BETA1",
    "BETA2",
    "BETA3",
    "BETA4",
    "BETA5",
    "BETA6_SNAPSHOT",
    "BETA6",
    "BETA7_SNAPSHOT",
    "BETA7",
    "BETA8_SNAPSHOT",
    "BETA8",
    "BETA9_SNAPSHOT",
    "BETA9",
    "FINAL",
)
#: Releases from 3.0.1 to 5.9.9, each with two ordinals. There is no 3.3.0 to 3.9.0.
_RELEASES = (
    *((3, 0, patch) for patch in range(1, 16)),
    *((3, minor, patch) for minor in range(1, 10) for patch in range(minor > 2, 10)),
    *((major, minor, patch) for major in (4, 5) for minor in range(10) for patch in range(10)),
)


def version_name(ordinal: int) -> str:
    """Returns the name of a RocketMQ version, as `V4_9_4`.

    Example:
        >>> version_name(0), version_name(27), version_name(28), version_name(401), version_name(9999)
        ('V3_0_0_SNAPSHOT', 'V3_0_6', 'V3_0_7_SNAPSHOT', 'V4_9_4', 'HIGHER_VERSION')
    """
    if ordinal < 0:
        return str(ordinal)
    if ordinal < len(_FIRST):
        return f"V3_0_0_{_FIRST[ordinal]}"
    # The snapshot of a release comes first.
    release, is_final = divmod(ordinal - len(_FIRST), 2)
    if release >= len(_RELEASES):
        return "HIGHER_VERSION"
    return f"V{'_'.join(map(str, _RELEASES[release]))}{'' if is_final else '_SNAPSHOT'}"
