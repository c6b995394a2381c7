"""Take out what must not leave the machine, and nothing that explains a failure.

In:  a log's bytes, with this machine's paths and names; or a text, an environment, a JSON value.
Out: the same with secrets replaced, of a log also addresses, paths and names; as many lines.
Not: configurations (hide.py), or what this machine is called (the caller knows).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from triage.core.regex import regex

_VARIABLES = (b"token=", b"secret", b"passw", b"_pass=", b"_key=", b"credential")
# Secrets: the pattern's last group is what is replaced, the rest is kept as context.
#   a Hugging Face token has 34 letters and digits; `hf_transformers_utils` has none
#   of that length between its underscores
#   a value in capitals only is a placeholder of a usage text
#   `sk-` needs a start of its own: `disk-cache` and `task-queue-worker` hold it too
# Beside each stand texts, in small letters, of which one is in all that it matches.
_SECRETS = tuple(
    (needs, regex(pattern))
    for pattern, *needs in (
        (rb"(?<![A-Za-z0-9_])hf_([A-Za-z0-9]{16,})", b"hf_"),
        (rb"(?<![A-Za-z0-9_])gh[opsu]_([A-Za-z0-9]{20,})", b"gho_", b"ghp_", b"ghs_", b"ghu_"),
        (rb"(?<![A-Za-z0-9_])AKIA([A-Z0-9]{16})(?![A-Za-z0-9])", b"akia"),
        (rb"(?<![A-Za-z0-9_-])sk-([A-Za-z0-9_-]{16,})", b"sk-"),
        (rb"(?i:\bbearer[ ]+)([A-Za-z0-9._~+/-]{8,}=*)", b"bearer "),
        (
            rb"(?i:--[a-z-]{0,60}(?:api-key|password|token|secret)[ =]"
            rb"|\b(?:api[_-]?key|password)['\"]?[ ]*[=:][ ]*)['\"]?(?!None\b|\$|[A-Z_]+\b)"
            rb"((?<=')[^'\n]+|(?<=\")[^\"\n]+|[^\s'\",)}]+)",
            b"key", b"password", b"token ", b"token=", b"secret ", b"secret=",
        ),
        (rb"\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@]+:([^\s:/@]+)(?=@)", b"://"),
        # Variables as shells, units and containers set them; capitals only, for
        # `eos_token=2` is an engine's own word.
        (
            rb"(?<=\")[A-Z0-9_]*(?:TOKEN|SECRET[A-Z_]*|PASSWORD|PASSWD|_PASS|_KEY|CREDENTIALS?)="
            rb"(?!\$)([^\"\n]+)(?=\")",
            *_VARIABLES,
        ),
        (
            rb"(?<![A-Za-z0-9_-])[A-Z0-9_]*"
            rb"(?:TOKEN|SECRET[A-Z_]*|PASSWORD|PASSWD|_PASS|_KEY|CREDENTIALS?)=['\"]?(?!\$)"
            rb"((?<=')[^'\n]+|(?<=\")[^\"\n]+|[^\s'\"]+)",
            *_VARIABLES,
        ),
    )
)  # fmt: skip
MARKER = "REDACTED"
_HIDDEN = MARKER.encode()
SECRET_NAME = regex(
    r"(?i)(^|_|-)(TOKEN|PASS|SECRET([_-]\w+)*"
    r"|(SECRET|PASSWORD|PASSWD|(API|ACCESS|PRIVATE)[_-]?KEY|CREDENTIAL)S?)$"
)

# Four numbers and dots. A package's version has that shape too (`cudnn 9.10.2.21`,
# `nvidia-nccl==2.28.3.1`), so a name or `==` before it rules it out.
IPV4 = regex(
    rb"(?<![\w.])(?<!==)(?<!version )(?<!cu1[1-9] )((?:\d{1,3}\.){3}\d{1,3})(?![\w.]*[A-Za-z]|\.\d)"
)
# Only prefixes that name a host: link-local, unique local, global. `c10::add` is no address.
IPV6 = regex(
    rb"(?i)(?<![\w:])(?:fe80|fd[0-9a-f]{2}|2[0-9a-f]{3}):[0-9a-f:]{0,40}:[0-9a-f:]{0,40}(?![\w:])"
)
_OCTET = 255  # the most that one of the four numbers can be
_SHOWN = ("127.", "0.0.0.0", "255.255.255.255", "192.0.2.")  # noqa: S104  compared, not bound


def redact(
    raw: bytes, *, paths: Mapping[bytes, bytes], names: Mapping[bytes, bytes] | None = None
) -> bytes:
    """`raw` without secrets, without this machine's addresses, paths and names.

    Redacting twice changes nothing more, if no replacement holds a key.

    Args:
        raw: A log, whole; a path that is cut by the end of a chunk would be missed.
        paths: Path prefix -> what stands for it; the longest prefix wins, and a
            prefix matches whole path components only.
        names: Word -> what stands for it, e.g. the host's and the user's name.

    Returns:
        Bytes with the same line ends; offsets within a line may differ.
    """
    raw = redact_secrets(raw)
    raw = _replace(raw, paths, before=rb"", after=rb"(?![\w-])")
    raw = _replace(raw, names or {}, before=rb"(?<![\w-])", after=rb"(?![\w-])")
    return _redact_addresses(raw)


def redact_secrets(raw: bytes) -> bytes:
    """`raw` without tokens, keys and passwords; addresses and paths stay."""
    small = raw.lower()
    for needs, pattern in _SECRETS:
        if any(map(small.__contains__, needs)):
            raw = pattern.sub(_hide_last_group, raw)
    return raw


def redact_text(text: str) -> str:
    """`redact_secrets` for text."""
    return redact_secrets(text.encode("utf-8", "surrogateescape")).decode(
        "utf-8", "surrogateescape"
    )


def redact_env(env: Mapping[str, str]) -> dict[str, str]:
    """The variables with the values of those hidden whose name says that they are secret."""
    return {
        name: MARKER if SECRET_NAME.search(name) else redact_text(value)
        for name, value in env.items()
    }


def redact_document(value: object) -> object:
    """A JSON value with every string in it redacted, and hidden what stands under a secret's name.

    A name may be a key, or the text beside a `value`: `{"env": "HF_TOKEN", "value": ...}`.

    Working on the values and not on the written text keeps the document whole.
    """
    match value:
        case str():
            return redact_text(value)
        case dict():
            named = any(
                isinstance(value.get(kind), str) and SECRET_NAME.search(value[kind])
                for kind in ("flag", "env", "set", "set_env")
            )
            return {
                name: MARKER
                if (named and name == "value")
                or (isinstance(inner, str) and inner and SECRET_NAME.search(str(name)))
                else redact_document(inner)
                for name, inner in value.items()
            }
        case list() | tuple():
            return [
                MARKER if _is_secret_flag(before) else redact_document(inner)
                for before, inner in zip((None, *value), value, strict=False)
            ]
        case _:
            return value


def redact_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command with secrets hidden: by shape, and after an option of such a name."""
    hidden = redact_document(list(words))
    assert isinstance(hidden, list)  # noqa: S101  as a list goes in
    return tuple(map(str, hidden))


def _is_secret_flag(word: object) -> bool:
    """Whether the word is an option whose value, the next word, is secret."""
    return isinstance(word, str) and word.startswith("--") and bool(SECRET_NAME.search(word))


def _hide_last_group(match: re.Match[bytes]) -> bytes:
    whole, start = match.group(0), match.start(0)
    return whole[: match.start(1) - start] + _HIDDEN + whole[match.end(1) - start :]


def _replace(raw: bytes, table: Mapping[bytes, bytes], *, before: bytes, after: bytes) -> bytes:
    """Every key of the table by its value in one pass, the longest key first."""
    if not table:
        return raw
    keys = b"|".join(re.escape(key) for key in sorted(table, key=len, reverse=True))
    return re.sub(before + b"(" + keys + b")" + after, lambda m: table[m.group(1)], raw)


def shown_address(address: bytes) -> bool:
    """Whether four numbers tell nothing of a machine, or are no address at all."""
    text = address.decode()
    return text.startswith(_SHOWN) or any(int(part) > _OCTET for part in text.split("."))


def _redact_addresses(raw: bytes) -> bytes:
    """Addresses by ones reserved for documentation: equal ones stay equal, others differ."""
    seen: dict[bytes, bytes] = {}

    def ipv4(match: re.Match[bytes]) -> bytes:
        address = match.group(1)
        if shown_address(address):
            return match.group(0)
        return seen.setdefault(address, b"192.0.2.%d" % (len(seen) % 254 + 1))

    raw = IPV4.sub(ipv4, raw)
    return IPV6.sub(b"2001:db8::1", raw)
