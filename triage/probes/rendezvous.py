"""Whether ranks of this machine find each other: its name, a port, a store, a missing rank.

In:  a host and a port, if others than the usual. Out: addresses, seconds, errors.
Not: several machines: only what one of them can tell.
"""

from __future__ import annotations

import importlib
import ipaddress
import os
import socket
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .harness import SkipError, experiment

NAME = "rendezvous"
_WAIT_S = 3.0


def run(torch: Any, _kind: str, arguments: dict[str, Any], limit_s: float) -> None:
    """The name first; then, as an engine does, a store over TCP and a group of two."""
    host = str(arguments.get("host", "127.0.0.1"))
    port = int(arguments.get("port", 0))
    experiment("own name", _own_name, limit_s)
    experiment("port", lambda: _port(host, port), limit_s, host=host, port=port)
    experiment("store", _store(torch, host, port), limit_s, host=host, port=port)
    experiment("missing rank", _missing(torch, host), limit_s, must_fail=True)


def _own_name() -> dict[str, Any]:
    """What the own name resolves to: gloo binds to that address."""
    name = socket.gethostname()
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(name, None)}
    except OSError as error:
        raise LookupError(f"the own host name does not resolve: {error}") from error
    addresses = sorted(str(address) for address in found)
    return {"addresses": len(addresses), "loopback": all(_is_loopback(a) for a in addresses)}


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _port(host: str, port: int) -> dict[str, Any]:
    """Whether the port can be listened on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((host, port))
        one.listen(1)
        return {"port": int(one.getsockname()[1])}


def _store(torch: Any, host: str, port: int) -> Callable[[], dict[str, Any]]:
    def work() -> dict[str, Any]:
        if torch is None:
            raise SkipError("torch is not there")
        dist = importlib.import_module("torch.distributed")

        used = port or _port(host, 0)["port"]
        pid = os.fork()
        if pid == 0:
            _other(dist, host, used)
        started = time.monotonic()
        store = dist.TCPStore(
            host, used, 2, is_master=True, timeout=timedelta(seconds=_WAIT_S * 3),
            wait_for_workers=False,
        )  # fmt: skip
        store.set("question", "6 * 7")
        answer = store.get("answer").decode()
        seconds = time.monotonic() - started
        os.waitpid(pid, 0)
        if answer != "42":
            raise ValueError(f"the other rank answered {answer!r}")
        return {"seconds": round(seconds, 4)}

    return work


def _other(dist: Any, host: str, port: int) -> None:
    """The second rank; never returns."""
    try:
        store = dist.TCPStore(
            host, port, 2, is_master=False, timeout=timedelta(seconds=_WAIT_S * 3),
            wait_for_workers=False,
        )  # fmt: skip
        known = store.get("question").decode() == "6 * 7"
        store.set("answer", "42" if known else "?")
    finally:
        sys.stderr.flush()
        os._exit(0)


def _missing(torch: Any, host: str) -> Callable[[], dict[str, Any]]:
    """A rank that never comes must end in a time-out, not in a hang."""

    def work() -> dict[str, Any]:
        if torch is None:
            raise SkipError("torch is not there")
        dist = importlib.import_module("torch.distributed")

        store = dist.TCPStore(
            host, _port(host, 0)["port"], 1, is_master=True,
            timeout=timedelta(seconds=_WAIT_S / 3), wait_for_workers=False,
        )  # fmt: skip
        store.get("never")
        return {}

    return work
