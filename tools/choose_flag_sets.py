"""Choose the flag sets on which resolution and launch are compared.

In:  the flag table, the installed SGLang (which resolves more than a thousand candidates).
Out: fixtures/flag-sets/sglang-0.5.23.json: sets of flags on top of one command, without verdicts.
Not: launching them (tests/e2e/agreement.py).

    .venv/bin/python tools/choose_flag_sets.py

Candidates are made from the flag table alone: each flag with a few values, and pairs of them
drawn with a fixed seed. Of those, the resolution's own answer only decides which kinds are
chosen, so that there are enough of each: refusals with different words, pairs that are refused
although each half is accepted, values that are not taken as given. Whether a launch agrees is
not known here.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from triage.core.config import Config, Flag, Value, words
from triage.core.flags import FlagSpec
from triage.core.resolution import Resolution, fields_of, overrides
from triage.knowledge import load_flag_table
from triage.session.resolve import Engine

ROOT = Path(__file__).parents[1]
Row = dict[str, Value]
TARGET = ROOT / "fixtures/flag-sets/sglang-0.5.23.json"
SEED = 20261130
PAIRS = 250  # drawn among all flags
KIN = 1800  # drawn among flags of one group, whose halves are accepted: there they interact
# On top of this everything is set; a flag of it is varied, too.
BASE: dict[str, Value] = {
    "model-path": ".models/tiny",
    "device": "cpu",
    "attention-backend": "torch_native",
    "mem-fraction-static": "0.1",
    "max-total-tokens": "4096",
    "disable-overlap-schedule": True,
}
# What names files, hosts, ports, other machines or other programs says little about flags.
LEFT_OUT = re.compile(
    r"path|folder|file|addr|url|host|port|config|key|cert|ssl|download|dump|trace|encoder|ray\b|"
    r"node|gpu-id|numa|grpc|remote|weight-cache|sidecar|mlx|checkpoint|warmups|hooks|crash|bucket|"
    r"domain|endpoint|device$|plugin|lora-paths|custom-weight|gated|otlp|labels|devices|http2"
)
# Words for flags that take any word; their meaning is the engine's.
NAMES = {
    "speculative-algorithm": ["NGRAM", "EAGLE", "DDTREE", "DFLASH", "UNO"],
    "moe-runner-backend": ["triton", "deep_gemm"],
    "model-impl": ["sglang", "nosuch"],
    "reasoning-parser": ["qwen3", "nosuch"],
    "tool-call-parser": ["qwen", "nosuch"],
}
# Both halves start, the pair does not: seen in launches of this version on the CPU.
KNOWN: list[Row] = [
    {"page-size": "16", "chunked-prefill-size": "100"},
    {"enable-priority-scheduling": True, "schedule-policy": "lpm"},
    {"enable-torch-compile": True, "disable-cuda-graph-padding": True},
    {"enable-dynamic-batch-tokenizer": True, "enable-tokenizer-batch-encode": True},
    {"min-free-slots-delay": "1", "pp-size": "2"},
]


def values_of(spec: FlagSpec) -> Iterator[Value]:
    """A few values of a flag, from its row of the table alone."""
    if spec.name in NAMES:
        yield from NAMES[spec.name]
    elif spec.style == "switch":
        yield True
    elif spec.style == "bool-optional":
        yield from (True, False)
    elif spec.choices:
        names = list(map(str, spec.choices))
        yield from dict.fromkeys([names[0], names[len(names) // 2], names[-1]])
        if len(names) % 5 == 0:
            yield "nosuch"
    elif spec.type in ("int", "human_readable_int"):
        yield from ("0", "2", "64") if len(spec.name) % 2 else ("1", "-1", "100")
        if len(spec.name) % 7 == 0:
            yield "many"
    elif spec.type == "float":
        yield from ("0.5", "1.5")


def candidates() -> tuple[list[Row], list[Row]]:
    """Sets of one flag, and of two."""
    table = load_flag_table()
    singles: list[Row] = [
        {spec.name: value}
        for spec in table.specs.values()
        if not LEFT_OUT.search(spec.name) and spec.style in ("value", "switch", "bool-optional")
        for value in values_of(spec)
    ]
    draw = random.Random(SEED)
    pairs: list[Row] = []
    while len(pairs) < PAIRS:
        one, two = draw.sample(singles, 2)
        if one.keys() != two.keys():
            pairs.append(one | two)
    return singles, [*KNOWN, *pairs]


def kin(singles: list[Row], accepted: set[str], draw: random.Random) -> list[Row]:
    """Pairs of one group of flags; values that are not the default, as far as they are accepted."""
    table = load_flag_table()
    groups: dict[str, list[Row]] = {}
    for row in singles:
        (name,) = row
        if key(row) in accepted:
            groups.setdefault(table.specs[name].group.partition(".")[0], []).append(row)
    drawn: dict[str, Row] = {}
    names = sorted(group for group, rows in groups.items() if len(rows) > 5)
    while len(drawn) < KIN:
        one, two = draw.sample(groups[draw.choice(names)], 2)
        if one.keys() != two.keys():
            drawn[key(one | two)] = one | two
    return list(drawn.values())


def main() -> None:
    singles, pairs = candidates()
    draw = random.Random(SEED)
    program = [".sglang/bin/python", "-m", "sglang.launch_server"]
    env = (("HF_HUB_OFFLINE", "1"),)
    with Engine(program, env, ROOT) as engine:
        base = engine.resolve(Config.of(BASE))
        if base.verdict != "accepted":
            sys.exit(f"the base is {base.verdict}: {base.reason or base.message}")
        answers = {}
        for row in (*singles, *pairs):
            answers[key(row)] = engine.resolve(Config.of(BASE | row))
        accepted = {key(row) for row in singles if answers[key(row)].verdict == "accepted"}
        more = kin(singles, accepted, draw)
        for row in more:
            answers[key(row)] = engine.resolve(Config.of(BASE | row))
        pairs += more
    groups: dict[str, list[Row]] = {}
    for row in (*singles, *pairs):
        groups.setdefault(kind_of(row, answers, base, accepted), []).append(row)
    chosen: list[Row] = list(KNOWN)
    for name, most in MOST.items():
        rows = different(groups.get(name, []), answers)
        rows = [row for row in rows if row not in chosen]
        draw.shuffle(rows)
        chosen += rows[:most]
        print(
            f"{name}: {len(groups.get(name, []))}, {len(rows)} different, {len(rows[:most])} chosen"
        )
    sample = [chosen[i] for i in range(0, len(chosen), max(1, len(chosen) // 12))][:12]
    document = {
        "schema": "triage.flag-sets/1",
        "engine_version": base.version,
        "seed": SEED,
        "base": BASE,
        "sets": chosen,
        "sample": [chosen.index(row) for row in sample],
    }
    TARGET.parent.mkdir(exist_ok=True)
    text = json.dumps(document, indent=1)
    TARGET.write_text(re.sub(r"\n   +", " ", text).replace("\n  }", " }") + "\n")
    print(f"{TARGET}: {len(chosen)} sets")


# How many of each kind are launched.
MOST = {
    "pair refused, halves accepted": 12,
    "pair refused otherwise": 5,
    "single refused": 17,
    "argparse": 5,
    "single not taken as given": 12,
    "pair with more moved than was set": 12,
    "single with more moved than was set": 8,
    "pair accepted": 8,
    "single accepted": 6,
}


def kind_of(row: Row, answers: dict[str, Resolution], base: Resolution, accepted: set[str]) -> str:
    found = answers[key(row)]
    one = len(row) == 1
    if found.verdict == "unknown":
        return "unknown"
    if found.verdict == "rejected":
        if found.exit_code == 2:
            return "argparse"
        if one:
            return "single refused"
        halves = all(key({name: value}) in accepted for name, value in row.items())
        return f"pair refused{', halves accepted' if halves else ' otherwise'}"
    table = load_flag_table()
    if one and overrides(Config.of(row), found, table):
        return "single not taken as given"
    fields = {table.specs[name].field for name in row}
    before, after = fields_of(base), fields_of(found)
    moved = {n for n in after if after[n] != before.get(n)} - fields
    if moved or overrides(Config.of(row), found, table):
        return f"{'single' if one else 'pair'} with more moved than was set"
    return f"{'single' if one else 'pair'} accepted"


def different(rows: list[Row], answers: dict[str, Resolution]) -> list[Row]:
    """One of each refusal by its words, numbers aside; of what is accepted, all."""
    seen: dict[str, Row] = {}
    for row in rows:
        found = answers[key(row)]
        text = re.sub(r"\d+", "N", f"{found.exception} {found.message[:60]}")
        seen.setdefault(text if found.verdict == "rejected" else key(row), row)
    return list(seen.values())


def key(row: Row) -> str:
    return " ".join(word for name, value in row.items() for word in words(Flag(name, value)))


def load() -> dict[str, Any]:
    """The chosen sets, as they are committed."""
    document: dict[str, Any] = json.loads(TARGET.read_text())
    return document


if __name__ == "__main__":
    main()
