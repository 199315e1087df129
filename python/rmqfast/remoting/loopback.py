"""Host addresses: checks for loopback, and writes IPv6 addresses in brackets."""

from __future__ import annotations


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host in {"127.0.0.1", "localhost"}:
        return True
    import ipaddress  # the default host needs no import, which speeds up the start

    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    # `::ffff:127.0.0.1` is loopback, too; an IPv6 listener sees IPv4 clients with such addresses.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def with_brackets(host: str) -> str:
    """Returns a host as it is written before a port: an IPv6 address gets brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
