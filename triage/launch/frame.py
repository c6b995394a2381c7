"""One message between triage and a process that it starts: a length, then fields that end with NUL.

In:  fields. Out: bytes, and the fields again.
Not: what the fields mean. Light imports only: the guard and the keeper use this.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def encode(fields: Iterable[str]) -> bytes:
    """The length in bytes, then that many bytes of fields, all ended by NUL."""
    body = b"".join(os.fsencode(text) + b"\0" for text in fields)
    return str(len(body)).encode() + b"\0" + body


def read(descriptor: int) -> list[bytes] | None:
    """The fields, and not a byte more is read; None if the writer died before it was complete."""
    length = b""
    while not length.endswith(b"\0"):
        digit = os.read(descriptor, 1)
        if not digit:
            return None
        length += digit
    body = b""
    while len(body) < int(length[:-1]):
        more = os.read(descriptor, int(length[:-1]) - len(body))
        if not more:
            return None
        body += more
    return body.split(b"\0")[:-1]
