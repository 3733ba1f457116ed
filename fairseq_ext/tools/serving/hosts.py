"""The names by which requests may call the server.

A page elsewhere can have its own name resolve to the address of this machine, and a browser then
takes the server for a part of that page (DNS rebinding). Its requests carry the page's name as
Host. An address as Host is no such name: nothing was resolved.
"""

import ipaddress
import re
from argparse import ArgumentTypeError
from typing import Iterable, List

from .schemas import Refused

ANY = "*"
MISDIRECTED = 421  # as RFC 9110 calls a request that another server should answer
SHOWN = 60  # characters of a wrong name


def host_name(text: str) -> str:
    """Return a name for --allow-host; ArgumentTypeError for what is none."""
    if text != ANY and not re.fullmatch(r"[\w-]+(\.[\w-]+)*\.?", text):
        raise ArgumentTypeError(f"{text!r}; allowed: a name without a port, or * for all")
    return without_port(text)


def without_port(host: str) -> str:
    """Return a Host without its port, the brackets of an address, and a dot at the end."""
    address = re.fullmatch(r"\[([^\]]*)\](:\d*)?", host)
    name = address.group(1) if address else re.sub(r":\d*$", "", host)
    return name.lower().rstrip(".")


def is_address(name: str) -> bool:
    """True if a name is an address of IPv4 or IPv6."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_allowed(host: str, names: Iterable[str]) -> bool:
    """True if a request may have this Host.

    Args:
        host: of the request, with a port or without.
        names: that are allowed beside addresses and localhost, or "*".
    """
    name = without_port(host)
    is_local = name == "localhost" or name.endswith(".localhost")
    return is_local or is_address(name) or any(entry in (ANY, name) for entry in names)


def check_host(hosts: List[str], names: Iterable[str]) -> None:
    """Raise Refused for a request to another name; one without a Host is no browser's."""
    for host in hosts:
        if not is_allowed(host, names):
            message = (
                f"Host {host!r:.{SHOWN}}; allowed: addresses, localhost, and the names of --host "
                "and --allow-host of the server"
            )
            raise Refused(MISDIRECTED, message)
