"""`python -m triage.replay --landscape FILE [--speed S] -- <server args>`.

In:  a landscape and server arguments. Out: a simulated launch, its log on standard error.
Not: importable; the parts are in the modules beside it.

Exit codes: those of SGLang for what the landscape says; 2 a wrong command line
or landscape, 65 the landscape has no entry for this configuration.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from triage.errors import UsageError
from triage.replay.arguments import Refused, parse_arguments, server_args, whole
from triage.replay.cast import Cast
from triage.replay.landscape import load_landscape
from triage.replay.manner import Manner
from triage.replay.script import mean_seconds, ranks_of, write_script
from triage.replay.stage import Clock, say

SECONDS = "--seconds"  # say how long launches take, play none
USAGE = "usage: python -m triage.replay --landscape FILE [--speed S] -- <server args>"
REFUSED = 65  # "data error" of sysexits.h: the landscape has no such point
MAX_RANKS = 64


def main(argv: list[str]) -> int:
    """Act out one launch; returns only if it did not begin."""
    try:
        if argv[:1] == [SECONDS]:
            return _tell(*_own_options([*argv[1:], "--"])[:2])
        path, speed, words = _own_options(argv)
        return _launch(path, speed, words)
    except UsageError as error:
        say(f"triage.replay: {error.message}")
        return error.exit_code
    except Refused as refused:
        say(refused.text.rstrip("\n"))
        return refused.code


def _own_options(argv: list[str]) -> tuple[Path, float, list[str]]:
    own, _, words = _split(argv)
    path, speed = "", 1.0
    while own:
        name, value = own[0], own[1] if len(own) > 1 else None
        if name not in ("--landscape", "--speed") or value is None:
            raise UsageError(f"{name} is no option of the replay engine, or lacks a value; {USAGE}")
        if name == "--landscape":
            path = value
        else:
            speed = _speed(value)
        own = own[2:]
    if not path:
        raise UsageError(USAGE)
    return Path(path), speed, words


def _split(argv: list[str]) -> tuple[list[str], str, list[str]]:
    if "--" not in argv:
        raise UsageError(f"the server arguments begin after --; {USAGE}")
    at = argv.index("--")
    return argv[:at], "--", argv[at + 1 :]


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed <= 1e6:  # noqa: PLR2004  beyond it sleeping is off anyway; nan fails too
        raise UsageError(f"--speed {text}: a number above 0 and at most 1000000 is needed")
    return speed


def _tell(path: Path, speed: float) -> int:
    """Print the mean seconds of launches that start, and of those that end by themselves."""
    starts, fails = mean_seconds(load_landscape(path))
    told = {
        "starts": None if starts is None else starts / speed,
        "fails": None if fails is None else fails / speed,
    }
    sys.stdout.write(f"{json.dumps(told)}\n")
    return 0


def _launch(path: Path, speed: float, words: list[str]) -> int:
    clock = Clock(speed)
    landscape = load_landscape(path)
    given = parse_arguments(words, landscape.flags)
    entry = landscape.find(given, os.environ)
    if isinstance(entry, str):
        say(f"triage.replay: refused: no entry for {entry}")
        return REFUSED
    sizes = [whole(given, landscape.flags, f"{name}-size", 1) for name in ("tp", "pp", "ep")]
    if min(sizes) < 1 or sizes[0] * sizes[1] > MAX_RANKS:
        say(f"triage.replay: refused: 1 to {MAX_RANKS} ranks, not tp, pp, ep = {sizes}")
        return REFUSED
    ranks = ranks_of(*sizes)
    try:
        acts = write_script(landscape, entry, ranks)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    keys = ", ".join(sorted(entry.when)) or "the baseline"
    say(f"triage.replay: landscape {landscape.name}: entry {entry.provenance}: {keys}")
    port = whole(given, landscape.flags, "port", 30000)
    host = str(given.get("host", "127.0.0.1"))
    resolved = {**server_args(given, landscape.flags), **landscape.overridden(entry)}
    args = {**resolved, "host": host, "port": port}
    cast = Cast(acts, ranks, clock, args, host, port, landscape.root)
    cast.manner = Manner(
        answers=entry.serves.answers,
        accept_length=entry.serves.accept_length,
        fails_after=entry.serves.fails_after,
        pool_tokens=landscape.model.kv_tokens,
        context=landscape.model.context,
    )
    return cast.play(orphan=entry.orphan)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
