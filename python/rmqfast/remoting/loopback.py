"""Host addresses: loopback ones, and brackets of IPv6."""

from __future__ import annotations

__all__ = ["is_loopback", "with_brackets"]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    Example:
        >>> [is_loopback(host) for host in ("localhost", "127.1.2.3", "::1", "0.0.0.0", "::", "10.0.0.1", "a.example")]
        [True, True, True, False, False, False, False]
    """
    if host in {"127.0.0.1", "localhost"}:
        return True
    import ipaddress  # what listens where it does unless told starts sooner without

    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    # `::ffff:127.0.0.1` is this machine, too; a listener of IPv6 sees clients of IPv4 so
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def with_brackets(host: str) -> str:
    """A host as written before a port.

    Example:
        >>> with_brackets("::1"), with_brackets("127.0.0.1")
        ('[::1]', '127.0.0.1')
    """
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
