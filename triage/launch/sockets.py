"""Who listens on a TCP port of this machine.

In:  a port. Out: its listeners, and the processes that hold them.
Not: connecting to anything.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_LISTEN = "0A"
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  recognised, not bound


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket: the address it is bound to, and its inode."""

    address: str
    inode: int

    @property
    def reach(self) -> str:
        """An address at which a process of this machine reaches it."""
        return _WILDCARDS.get(self.address, self.address)

    def hides(self, other: Listener) -> bool:
        """Whether a connection meant for `other` might come to this one."""
        same_family = (":" in self.address) == (":" in other.address)
        return same_family and (
            self.address == other.address
            or self.address in _WILDCARDS
            or other.address in _WILDCARDS
        )


def listeners(port: int) -> tuple[Listener, ...]:
    """The listening TCP sockets of this port, IPv4 first."""
    found = []
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text().splitlines()[1:]
        except OSError:
            continue  # no IPv6
        for line in lines:
            words = line.split()
            address, _, number = words[1].partition(":")
            if words[3] == _LISTEN and int(number, 16) == port:
                found.append(Listener(_address(address), int(words[9])))
    return tuple(found)


def _address(text: str) -> str:
    """The address from the kernel's form: 32-bit words in the host's byte order."""
    raw = bytes.fromhex(text)
    # Every machine that runs these engines is little-endian.
    swapped = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6  # noqa: PLR2004
    return socket.inet_ntop(family, swapped)


def holder(listener: Listener, pids: Iterable[int]) -> int:
    """The first of these processes that holds the socket open; 0 if none may be seen to."""
    link = f"socket:[{listener.inode}]"
    for pid in pids:
        try:
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                try:
                    if str(descriptor.readlink()) == link:
                        return pid
                except OSError:
                    continue
        except OSError:
            continue
    return 0


def own_listener(port: int, pids: tuple[int, ...]) -> Listener | None:
    """The port's listener that one of `pids` holds and that no foreign listener hides."""
    found = listeners(port)
    ours = [listener for listener in found if holder(listener, pids)]
    foreign = [listener for listener in found if listener not in ours]
    for listener in ours:
        if not any(other.hides(listener) for other in foreign):
            return listener
    return None


def own_address(port: int, pids: tuple[int, ...]) -> str:
    """Where the port's own listener is reached; "" if there is none."""
    listener = own_listener(port, pids)
    return listener.reach if listener else ""
