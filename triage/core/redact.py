"""Take out what must not leave the machine, and nothing that explains a failure.

In:  a log's bytes, with this machine's paths and names; or a text, a config, a JSON value.
Out: the same with secrets replaced, of a log also addresses, paths and names; as many lines.
Not: finding out what this machine is called (the caller knows its paths and names).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from triage.core.config import Change, Config, SetEnv, SetFlag, Value, apply
from triage.core.regex import regex
from triage.core.trials import Problem

# Secrets: the pattern's last group is what is replaced, the rest is kept as context.
#   a Hugging Face token has 34 letters and digits; `hf_transformers_utils` has none
#   of that length between its underscores
#   a value in capitals only is a placeholder of a usage text
#   `sk-` needs a start of its own: `disk-cache` and `task-queue-worker` hold it too
_SECRETS = tuple(
    regex(pattern)
    for pattern in (
        rb"(?<![A-Za-z0-9_])hf_([A-Za-z0-9]{16,})",
        rb"(?<![A-Za-z0-9_])gh[opsu]_([A-Za-z0-9]{20,})",
        rb"(?<![A-Za-z0-9_])AKIA([A-Z0-9]{16})(?![A-Za-z0-9])",
        rb"(?<![A-Za-z0-9_-])sk-([A-Za-z0-9_-]{16,})",
        rb"(?i:\bbearer[ ]+)([A-Za-z0-9._~+/-]{8,}=*)",
        rb"(?i:--[a-z-]{0,60}(?:api-key|password|token|secret)[ =]"
        rb"|\b(?:api[_-]?key|password)['\"]?[ ]*[=:][ ]*)['\"]?(?!None\b|\$|[A-Z_]+\b)"
        rb"((?<=')[^'\n]+|(?<=\")[^\"\n]+|[^\s'\",)}]+)",
        rb"\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@]+:([^\s:/@]+)(?=@)",
        # Variables as shells, units and containers set them; capitals only, for
        # `eos_token=2` is an engine's own word.
        rb"(?<=\")[A-Z0-9_]*(?:TOKEN|SECRET[A-Z_]*|PASSWORD|PASSWD|_PASS|_KEY|CREDENTIALS?)="
        rb"(?!\$)([^\"\n]+)(?=\")",
        rb"(?<![A-Za-z0-9_-])[A-Z0-9_]*"
        rb"(?:TOKEN|SECRET[A-Z_]*|PASSWORD|PASSWD|_PASS|_KEY|CREDENTIALS?)=['\"]?(?!\$)"
        rb"((?<=')[^'\n]+|(?<=\")[^\"\n]+|[^\s'\"]+)",
    )
)
MARKER = "REDACTED"
_HIDDEN = MARKER.encode()
_OTHER = f"{MARKER}-2"
_TOO_COMMON = 4  # characters
_SECRET_NAME = regex(
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
    for pattern in _SECRETS:
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
        name: MARKER if _SECRET_NAME.search(name) else redact_text(value)
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
                isinstance(value.get(kind), str) and _SECRET_NAME.search(value[kind])
                for kind in ("flag", "env", "set", "set_env")
            )
            return {
                name: MARKER
                if (named and name == "value")
                or (isinstance(inner, str) and inner and _SECRET_NAME.search(str(name)))
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
    return isinstance(word, str) and word.startswith("--") and bool(_SECRET_NAME.search(word))


def hide_config(config: Config) -> Config:
    """The config with every secret value hidden: by its name, or by its shape."""
    return Config.of(
        {flag.name: _hide_value(flag.name, flag.value) for flag in config.flags},
        redact_env(config.env_values()),
    )


def hide_change(change: Change) -> Change:
    """The change with its value hidden if it is secret."""
    match change:
        case SetFlag(name, value):
            return SetFlag(name, _hide_value(name, value))
        case SetEnv(name, text):
            return SetEnv(name, redact_env({name: text})[name])
        case _:
            return change


def hide_problem(problem: Problem) -> Problem:
    """The problem as it may be shown and stored; its items keep their keys and their effects.

    Two secrets of one name stay two: what an item changes is still changed when hidden.
    """
    baseline = hide_config(problem.baseline)
    items = []
    for item in problem.items:
        change = hide_change(item.change)
        if apply(baseline, (change,)) == baseline:
            change = _other(change)
        items.append(replace(item, change=change))
    return replace(problem, baseline=baseline, items=tuple(items))


def _other(change: Change) -> Change:
    """A hidden change that is not what the baseline hides under the same name."""
    match change:
        case SetFlag(name):
            return SetFlag(name, _OTHER)
        case SetEnv(name):
            return SetEnv(name, _OTHER)
        case _:
            return change


def secrets_of(problem: Problem, env: Mapping[str, str]) -> tuple[str, ...]:
    """Every value of the problem and of `env` that is secret by its name, the longest first."""
    values = {v for n, v in env.items() if _SECRET_NAME.search(n)}
    configs = (problem.baseline, problem.config(problem.keys()))
    for config in configs:
        values |= {v for n, v in config.env if _SECRET_NAME.search(n)}
        values |= {
            f.value
            for f in config.flags
            if isinstance(f.value, str) and _SECRET_NAME.search(f.name)
        }
    return tuple(sorted((v for v in values if v), key=lambda v: (-len(v), v)))


def hide_literals(text: str, secrets: Iterable[str]) -> str:
    """The text without these values where they stand as words, and without what looks secret."""
    for secret in secrets:
        if len(secret) < _TOO_COMMON:
            continue  # `1` stands in many places; beside its name it is hidden all the same
        text = re.sub(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", MARKER, text)
    return redact_text(text)


def is_hidden(value: Value) -> bool:
    """Whether something of this value was hidden when it was stored."""
    parts = value if isinstance(value, tuple) else (value,)
    return any(isinstance(part, str) and MARKER in part for part in parts)


def _hide_value(name: str, value: Value) -> Value:
    match value:
        case bool():
            return value
        case str():
            return MARKER if _SECRET_NAME.search(name) else redact_text(value)
        case parts:
            return tuple(redact_text(part) for part in parts)


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
