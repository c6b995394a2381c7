"""Record the launches of tools/pairs.yaml: logs that `triage diff` is tested on.

In:  pairs.yaml, the SGLang in .sglang. Out: fixtures/pairs/<name>.log, redacted.
Not: what a comparison of them must show (pairs.yaml).

    .venv/bin/python tools/record_pairs.py [NAME...]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Literal

from pydantic import Field
from record_cases import play, replacements
from scenarios import Expect, Scenario, Strict

from triage.core.redact import redact
from triage.yamlfile import load_yaml

FILE = Path(__file__).with_name("pairs.yaml")
FOLDER = Path(__file__).parents[1] / "fixtures/pairs"


class Launch(Strict):
    """One launch: what differs from the plain one; keys as in a scenario."""

    name: str
    flags: str = ""
    model: str = "tiny"
    tokens: str | int | None = 4096
    ranks: int = 1
    env: dict[str, str] = Field(default_factory=dict)
    until: Literal["exit", "ready"] = "exit"

    def scenario(self) -> Scenario:
        """The same for the recorder."""
        return Scenario(
            note="", expect=Expect(outcome="healthy", cause=None), stubs=True, **self.model_dump()
        )


class Shows(Strict):
    """What the comparison of two launches must show, and nothing else.

    `set` are flags; `moved` fields by the flag that they moved with; `decisions` pieces of
    text, one for each line that is shown.
    """

    good: str
    bad: str
    set: tuple[str, ...] = ()
    moved: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    env: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    timeline: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()


class Pairs(Strict):
    """The whole file."""

    schema_: Literal["triage.pairs/1"] = Field(alias="schema")
    engine_version: str
    launches: tuple[Launch, ...]
    pairs: tuple[Shows, ...] = ()


def load_pairs() -> Pairs:
    """The checked content of pairs.yaml."""
    return load_yaml(FILE, Pairs)


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    paths, known = replacements()
    for launch in load_pairs().launches:
        if names and launch.name not in names:
            continue
        started = time.time()
        log = redact(play(launch.scenario()), paths=paths, names=known)
        (FOLDER / f"{launch.name}.log").write_bytes(log)
        print(f"{launch.name}: {len(log)} bytes, {time.time() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
