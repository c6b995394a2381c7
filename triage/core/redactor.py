"""Take out of a text whose machine it is from: hosts, users, home folders, addresses, secrets.

In:  a log's bytes, a text or a JSON value, and what this machine and its user are called.
Out: the same with stand-ins: equal names stay equal, others differ; as many lines.
Not: what is secret by its shape (redact.py), or finding out names (triage.session.reports).

A name is known because the caller gives it, or because of the place where it stands: the
prefix of an NCCL line, a journal's host column, a rendezvous address. Once known, it is
taken out wherever it stands as a word. Names of public hosts stay: that a download from
huggingface.co failed is what the reader must see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from triage.core.redact import IPV4, IPV6, redact_document, redact_secrets, shown_address

USER, HOST = b"user", b"host"
_NAME = rb"[A-Za-z][\w-]*(?:\.[\w-]+)*"
_STAND_IN = re.compile(
    rb"user|host(?:-\d+)?|localhost|REDACTED\w*|(?i:none|null|true|false|unknown)"
)
# The name is the last group.
_HOSTS = tuple(
    re.compile(pattern)
    for pattern in (
        # gpu-7:1234:1301 [0] NCCL INFO ...
        rb"(?<![\w.-])(" + _NAME + rb")(?=:\d+:\d+ \[\d+\] )",
        # Jul 01 12:00:00 gpu-7 sglang[12]: ...  and the same with an ISO time
        rb"(?m)^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
        rb"|\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-][\d:]{4,5}))"
        rb" (" + _NAME + rb")(?= (?:[\w./@-]+\[\d+\]|kernel): )",
        # [c10d] ... connect to [gpu-7]:29500, tcp://gpu-7:29500, dist_init_addr='gpu-7:5000'
        rb"(?<!\w)\[(?!rank\d)(" + _NAME + rb")(?=\]:\d)",
        rb"(?<!\w)(?:tcp|nccl|ucx|zmq)://(" + _NAME + rb")(?=[:/\s]|$)",
        rb"dist[_-]init[_-]addr['\"]?[=: ]+['\"]?(" + _NAME + rb")(?=:\d)",
        # srun: error: gpu-7: task 3: ...  and  *** STEP 1.0 ON gpu-7 CANCELLED
        rb"(?<!\w)srun: error: (" + _NAME + rb")(?=: task)",
        rb"(?<!\w)ON (" + _NAME + rb")(?= CANCELLED)",
        rb"(?<![\w-])(?:HOSTNAME|NODE_NAME|SLURMD_NODENAME|SLURM_(?:JOB_)?NODELIST|MASTER_ADDR)="
        rb"['\"]?(" + _NAME + rb")",
        # With a dash or a digit, for code says `hostname=hostname`.
        rb"(?<![\w-])(?:host_?name|node_?name)(?:=|['\"]: ?)['\"]?((?=[\w.]*[\d-])"
        + _NAME
        + rb")(?![\w.-]*[(/])",
        # Names that no public host has; a dash or a digit, for `torch._C.internal` is a module.
        rb"(?<![\w./@-])((?=[a-z.]*[\d-])[a-z0-9-]+(?:\.[a-z0-9-]+)*"
        rb"\.(?:internal|local|localdomain|lan|corp|intra))(?![\w.(-])",
        rb"(?<![\w./@-])(ip-\d+-\d+-\d+-\d+)(?![\w-])",
    )
)
_USERS = tuple(
    re.compile(pattern)
    for pattern in (
        rb"(?<![\w-])(?:USER|LOGNAME|USERNAME|SUDO_USER|SLURM_JOB_USER)=['\"]?([\w.-]+)",
        rb"/(?:home|Users)/([^/\s'\":,;)\]}>\\]+)",
        rb"(?i)\bC:\\+Users\\+([^\\\s'\":,;)\]}>]+)",
    )
)
_AT = re.compile(
    rb"(?<![\w/.@+-])([A-Za-z_][\w.+-]*)@((?:[A-Za-z][\w-]*\.)+[a-z]{2,}\b|"
    + _NAME
    + rb"(?=:[~/\s]))"
)
# A person's or a machine's name that is also a word of logs would eat what explains a failure.
_SHORTEST = 4
_WORDS = frozenset(
    b"root user users admin ubuntu debian runner docker nobody jenkins build builder test tests "
    b"default main master worker model models server sglang triage torch cuda nccl rank python "
    b"host node error warning info debug memory device kernel launch service container "
    b"data work home temp cache scheduler engine system".split()
)


class Redactor:
    """Takes names out of the texts of one report, with the same stand-in for the same name.

    Args:
        names: Word -> stand-in, e.g. this machine's name and the user's.
        paths: Path prefix -> stand-in, e.g. the home folder; whole components only.
    """

    def __init__(
        self, *, names: Mapping[str, str] | None = None, paths: Mapping[str, str] | None = None
    ) -> None:
        self._names = {
            key.encode(): value.encode() for key, value in (names or {}).items() if _telling(key)
        }
        self._paths = {key.encode(): value.encode() for key, value in (paths or {}).items() if key}
        self._hosts: dict[bytes, bytes] = {}
        self._addresses: dict[bytes, bytes] = {}

    def raw(self, raw: bytes) -> bytes:
        """The bytes without secrets and names; their line ends stay where they are."""
        raw = redact_secrets(raw)
        raw = _replace(raw, self._paths, after=rb"(?![\w-])", before=rb"(?<![\w-])")
        raw = _replace(raw, self._names, after=rb"(?![\w-])", before=rb"(?<![\w-])")
        for pattern in _USERS:
            raw = pattern.sub(_instead(lambda _: USER), raw)
        for pattern in _HOSTS:
            raw = pattern.sub(_instead(self._host), raw)
        raw = _AT.sub(lambda m: USER + b"@" + self._host(m[2]), raw)
        known = {name: self._hosts[name] for name in self._hosts if _telling(name.decode())}
        raw = _replace(raw, known, before=rb"(?<![\w.-])", after=rb"(?![\w-])")
        raw = IPV4.sub(self._address, raw)
        return IPV6.sub(b"2001:db8::1", raw)

    def text(self, text: str) -> str:
        """`raw` for text."""
        return self.raw(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def document(self, value: object) -> object:
        """A JSON value with every string in it redacted; keys stay."""
        return self._values(redact_document(value))

    def _values(self, value: object) -> object:
        match value:
            case str():
                return self.text(value)
            case dict():
                return {name: self._values(inner) for name, inner in value.items()}
            case list() | tuple():
                return [self._values(inner) for inner in value]
            case _:
                return value

    def _host(self, name: bytes) -> bytes:
        if _STAND_IN.fullmatch(name):
            return name
        return self._hosts.setdefault(name, HOST + b"-%d" % (len(self._hosts) + 1))

    def _address(self, match: re.Match[bytes]) -> bytes:
        address = match[1]
        if shown_address(address):
            return match[0]
        free = b"192.0.2.%d" % (len(self._addresses) % 254 + 1)
        return self._addresses.setdefault(address, free)


def _telling(name: str) -> bool:
    """Whether a name is worth hiding wherever it stands, and no word that logs are full of."""
    return len(name) >= _SHORTEST and name.lower().encode() not in _WORDS


def _instead(stand_in: Callable[[bytes], bytes]) -> Callable[[re.Match[bytes]], bytes]:
    """A replacement of a match's first group, which keeps what stands around it."""

    def replace(match: re.Match[bytes]) -> bytes:
        name = match[1]
        if _STAND_IN.fullmatch(name):
            return match[0]
        whole, start = match[0], match.start()
        return whole[: match.start(1) - start] + stand_in(name) + whole[match.end(1) - start :]

    return replace


def _replace(raw: bytes, table: Mapping[bytes, bytes], *, before: bytes, after: bytes) -> bytes:
    """Every key of the table by its value in one pass, the longest key first."""
    if not table:
        return raw
    keys = b"|".join(re.escape(key) for key in sorted(table, key=len, reverse=True))
    return re.sub(before + b"(" + keys + b")" + after, lambda m: table[m[1]], raw)
