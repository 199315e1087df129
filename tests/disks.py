"""Limits of the disk that no machine's is too full for: brokers of tests take messages while there is any room."""

from __future__ import annotations

#: RocketMQ takes at most 95 for the first.
ROOMY = {
    "diskMaxUsedSpaceRatio": "95",
    "rocketmq.broker.diskSpaceCleanForciblyRatio": "1.0",
    "rocketmq.broker.diskSpaceWarningLevelRatio": "1.0",
}
