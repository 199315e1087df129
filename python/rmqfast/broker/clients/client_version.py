"""What clients of old releases cannot be asked for.

Source: `MQVersion`.
"""

from __future__ import annotations

#: Ordinals of releases: since the first clients know how to reset offsets, since the second how to tell of themselves.
V3_0_7_SNAPSHOT = 28
V3_1_8_SNAPSHOT = 62

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


def version_name(ordinal: int) -> str:
    """The name of a release up to 3.1.8, of those that are refused; a number for another one.

    Example:
        >>> version_name(0), version_name(27), version_name(28), version_name(37), version_name(61)
        ('V3_0_0_SNAPSHOT', 'V3_0_6', 'V3_0_7_SNAPSHOT', 'V3_0_11', 'V3_1_7')

    Source: `MQVersion.getVersionDesc`.
    """
    if 0 <= ordinal < len(_FIRST):
        return f"V3_0_0_{_FIRST[ordinal]}"
    if not len(_FIRST) <= ordinal <= V3_1_8_SNAPSHOT:
        return str(ordinal)
    release, is_final = divmod(ordinal - len(_FIRST), 2)
    minor, patch = (0, release + 1) if release < 15 else (1, release - 15)
    return f"V3_{minor}_{patch}{'' if is_final else '_SNAPSHOT'}"
