"""Access control: ACL 1.0, as clients of RocketMQ sign and as the broker of 4.9.4 checks.

`AccessValidator.check` stands before everything that answers requests; `AclProcessor` shows and changes its rules.
"""

from rmqfast.broker.acl.access_validator import AccessValidator, Mode
from rmqfast.broker.acl.account import AccountConfig
from rmqfast.broker.acl.acl_files import AclFiles
from rmqfast.broker.acl.acl_processor import AclProcessor
from rmqfast.broker.acl.rights import RIGHTS, Need, Right

__all__ = ["RIGHTS", "AccessValidator", "AccountConfig", "AclFiles", "AclProcessor", "Mode", "Need", "Right"]
