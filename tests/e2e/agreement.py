"""Compare what a resolution says with what a launch does, flag set by flag set.

In:  fixtures/flag-sets, the installed SGLang. Out: a Pair each; a page with all of them.
Not: choosing the sets (tools/choose_flag_sets.py).

A launch is watched until it has passed the configuration: the line `server_args=` ends it, as
the engine prints it right before it starts the first process. So a set costs seconds.
"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from triage.core.config import Config, Value
from triage.core.launch import Crashed, LaunchSpec, Patience
from triage.core.resolution import MASKS, Resolution, fields_of, overrides
from triage.knowledge import load_flag_table
from triage.launch import free_port, launch
from triage.session.prepare import prepare
from triage.session.resolve import Engine
from triage.session.trial import launch_once

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "bench/RESOLUTION.md"
PAIRS = ROOT / "recipes/tiny-cpu-config-pairs.yaml"
SETS = ROOT / "fixtures/flag-sets/sglang-0.5.23.json"
PROGRAM = (str(ROOT / ".sglang/bin/python"), "-m", "sglang.launch_server")
BASE_ENV = (
    ("HF_HUB_OFFLINE", "1"),
    ("SGLANG_CUDA_COREDUMP_BEFORE_CRASH", "0"),
    ("SGLANG_PYSPY_DUMP_BEFORE_CRASH", "0"),
)
PASSED = re.compile(rb"\] server_args=(\{.*\})")
ERROR = re.compile(r"^(?:(?P<kind>[A-Za-z_][\w.]*): ?(?P<text>.*)|(?P<bare>\w+Error|Exception))$")
USAGE = re.compile(r"^sglang serve: error: (?P<text>.*)$", re.M)
LONGEST = 110  # letters of the last column
Row = dict[str, Value]


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """What a launch showed of its configuration, or what a resolution said."""

    verdict: str  # accepted, rejected, or why neither
    exit_code: int | None
    message: str  # exception and first line of its message; of argparse, the line of the error
    fields: dict[str, Any]
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """One flag set: resolved and launched."""

    row: Row
    resolved: Seen
    launched: Seen
    overridden: tuple[str, ...]  # what was not taken as given
    moved: tuple[str, ...]  # fields that differ from the base's and were not set
    silent: bool  # what moved, moved without a word of the engine

    @property
    def agree(self) -> bool:
        """The same verdict, the same words of a refusal, the same values."""
        return not self.differs

    @property
    def differs(self) -> str:
        """What differs; "" if nothing does."""
        a, b = self.resolved, self.launched
        if a.verdict != b.verdict:
            return f"resolution {a.verdict}, launch {b.verdict}"
        if a.verdict == "rejected":
            if a.exit_code != b.exit_code:
                return f"exit code {a.exit_code} and {b.exit_code}"
            same = ordered(a.message) == ordered(b.message)
            return "" if same else f"{a.message!r} and {b.message!r}"
        names = sorted(n for n in a.fields | b.fields if a.fields.get(n) != b.fields.get(n))
        return f"values of {', '.join(names)}" if names else ""


def ordered(message: str) -> str:
    """The message with a list of choices in order: some are sets, printed as they come."""
    head, choose, choices = message.partition(" (choose from ")
    return head + choose + ", ".join(sorted(choices.rstrip(")").split(", ")))


class UntilResolved:
    """Reads a log until the configuration has passed."""

    phase = "unknown"
    fatal_line = 0
    ready_line = 0

    def __init__(self) -> None:
        self.text = b""

    def feed(self, chunk: bytes) -> None:
        self.text += chunk
        if PASSED.search(self.text):
            self.fatal_line = self.text[: self.text.index(b"server_args=")].count(b"\n") + 1

    def unheard(self) -> frozenset[str]:
        return frozenset()


def load() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(SETS.read_text())
    return document


def launched(config: Config, folder: Path) -> Seen:
    """A real launch, ended as soon as its configuration has passed."""
    from triage.core.config import SetFlag, apply, argv

    watch = UntilResolved()
    with free_port() as port:
        placed = apply(config, (SetFlag("host", "127.0.0.1"), SetFlag("port", str(port))))
        spec = LaunchSpec(
            argv=(*PROGRAM, *argv(placed)), env=BASE_ENV, cwd=str(ROOT), port=port,
            patience=Patience(silent_s=150, total_s=200),
        )  # fmt: skip
        began = time.monotonic()
        capture = launch(spec, folder, watch, stop_grace_s=1)
        seconds = time.monotonic() - began
    text = Path(capture.log).read_bytes()
    if found := PASSED.search(text):
        dump = ast.literal_eval(found[1].decode())
        fields = fields_of(Resolution(verdict="accepted", resolved=dump))
        return Seen("accepted", None, "", plain(fields), seconds)
    match capture.outcome:
        case Crashed(exit_code=int(code)) if code > 0:
            return Seen("rejected", code, last_error(text.decode(errors="replace")), {}, seconds)
        case outcome:
            return Seen(f"{type(outcome).__name__.lower()}", None, "", {}, seconds)


def resolved(engine: Engine, config: Config) -> tuple[Seen, Resolution]:
    """The same, without a launch."""
    found = engine.resolve(config)
    fields = plain(fields_of(found))
    message = "" if found.verdict == "accepted" else last_error(found.log) or found.reason
    return Seen(found.verdict, found.exit_code, message, fields, found.seconds), found


def plain(fields: dict[str, Any]) -> dict[str, Any]:
    """As JSON holds them: tuples are lists, and objects their text."""
    document: dict[str, Any] = json.loads(json.dumps(fields, default=str))
    return document


def last_error(log: str) -> str:
    """Name and first line of the last exception, or what argparse said."""
    if usage := USAGE.search(log):
        return usage["text"]
    at = log.rfind("Traceback (most recent call last)")
    for line in log[at:].splitlines()[1:] if at >= 0 else []:
        if ERROR.match(line):
            return line
    return ""


def compare(
    rows: Iterable[Row],
    folder: Path,
    *,
    known: dict[str, Any] | None = None,
    say: Callable[[Pair], None] = lambda _: None,
    keep: Callable[[Row, Seen], None] = lambda *_: None,
    until: float = float("inf"),
) -> list[Pair]:
    """Resolve and launch each set on top of the base; `known` has launches made before."""
    document = load()
    base_row = document["base"]
    table = load_flag_table()
    done: list[Pair] = []
    with Engine(PROGRAM, BASE_ENV, ROOT) as engine:
        base = engine.resolve(Config.of(base_row))
        assert base.verdict == "accepted", base
        for number, row in enumerate(rows):
            name = json.dumps(row)
            old = (known or {}).get(name)
            if old is None and time.time() > until:
                continue
            config = Config.of(base_row | row)
            says, found = resolved(engine, config)
            does = Seen(**old) if old else launched(config, folder / f"{number:03d}")
            if old is None:
                keep(row, does)
            fields = {table.specs[flag].field for flag in row}
            before = fields_of(base)
            moved = [n for n, v in fields_of(found).items() if v != before.get(n)]
            words = set(notable(found.log)) - set(notable(base.log))
            pair = Pair(
                row, says, does,
                tuple(o.flag for o in overrides(Config.of(row), found, table)),
                tuple(sorted(set(moved) - fields)) if found.verdict == "accepted" else (),
                not words,
            )  # fmt: skip
            done.append(pair)
            say(pair)
    return done


def notable(log: str) -> list[str]:
    """The engine's own lines, without their time."""
    lines = (line.partition("] ")[2] for line in log.splitlines() if line.startswith("["))
    return [line for line in lines if not line.startswith("server_args=")]


def is_override(pair: Pair) -> bool:
    """Accepted, and something else is in effect than was given."""
    return pair.resolved.verdict == "accepted" and bool(pair.overridden or pair.moved)


def page(pairs: Sequence[Pair], every: int, saved: Saved | None) -> str:
    """The whole comparison, as it is committed."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    agree = [p for p in pairs if p.agree]
    overridden = [p for p in pairs if is_override(p)]
    silent = [p for p in overridden if p.silent]
    launches = sum(p.launched.seconds for p in pairs)
    asked = sum(p.resolved.seconds for p in pairs)
    rest = f" (of {every}: the others were not launched yet)" if len(pairs) < every else ""
    return "\n".join(
        (
            "# Resolution and launch, flag set by flag set",
            "",
            f"Written by `make e2e-full` on {today}, commit {commit}, SGLang 0.5.23 on a CPU with a tiny",
            "model. The sets are generated from the flag table (`tools/choose_flag_sets.py`); each is",
            "resolved, and launched until its configuration has passed or was refused. They agree if the",
            "verdict is the same, and the words of a refusal with its exit code, or every value of the",
            "`server_args=` line. Seconds of a launch are those until then, not until it would be ready.",
            "",
            f"- {len(pairs)} sets{rest}, {sum(len(p.row) == 2 for p in pairs)} of them pairs",
            f"- {sum(p.launched.verdict == 'rejected' for p in pairs)} refused by the launch",
            f"- {len(overridden)} accepted with something else in effect than was given,"
            f" {len(silent)} of them without a word in the log",
            f"- **{len(agree)} of {len(pairs)} agree**",
            f"- {launches:.0f} s of launches, {asked:.0f} s of resolutions: {launches / asked:.0f}"
            " to 1 (the import of SGLang, once for all resolutions, not counted)",
            "",
            "A resolution does not see: " + "; ".join(MASKS) + ".",
            "",
            *_five_pairs(saved),
            "## Set by set",
            "",
            "| set | launch | s | resolution | s | agree | what else moved, or the refusal |",
            "|---|---|---|---|---|---|---|",
            *map(_row, pairs),
            "",
        )
    )


def _five_pairs(saved: Saved | None) -> list[str]:
    if saved is None:
        return []
    return [
        "## Five pairs, without a launch",
        "",
        f"`{PAIRS.relative_to(ROOT)}` has ten flags, and {saved.sets} pairs among them that do not",
        "start together although each half does. Asking finds them, each with its two halves",
        f"accepted, in {saved.asked_s:.0f} s, the import of SGLang included. The {saved.launches}"
        " launches that",
        "show the same (the baseline, each half to its first answer, each pair to its failure)",
        f"take {saved.launched_s:.0f} s: **{saved.ratio:.1f} to 1**.",
        "",
    ]


def _row(p: Pair) -> str:
    flags = ", ".join(
        f"{name}" if value is True else f"{name} {value}" for name, value in p.row.items()
    )
    said = p.launched.message or ", ".join((*p.overridden, *p.moved))
    if len(said) > LONGEST:
        said = said[: LONGEST - 2] + ".."
    said = said.replace("|", "\\|").replace("<", "&lt;")
    return (
        f"| {flags} | {p.launched.verdict} | {p.launched.seconds:.1f} | {p.resolved.verdict} |"
        f" {p.resolved.seconds:.2f} | {'yes' if p.agree else f'**no**: {p.differs}'} | {said} |"
    )


def sample() -> list[Row]:
    """The fixed twelve of `make e2e`."""
    document = load()
    return [document["sets"][number] for number in document["sample"]]


def told(pair: Pair) -> str:
    """One line of the comparison."""
    sign = "agree" if pair.agree else f"DIFFER ({pair.differs})"
    took = f"{pair.launched.seconds:5.1f} s launched, {pair.resolved.seconds:.2f} s resolved"
    return f"{sign:6s} {pair.launched.verdict:8s} {took}  {json.dumps(pair.row)}"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclasses.dataclass(frozen=True, slots=True)
class Saved:
    """The five pairs of one recipe: found by asking, and shown by launching."""

    sets: int
    asked_s: float  # wall time of the search without a launch, the import included
    launches: int
    launched_s: float

    @property
    def ratio(self) -> float:
        return self.launched_s / self.asked_s


def without_a_launch(session: Path) -> tuple[dict[str, Any], float]:
    """The pairs of the recipe, found by asking only; the document, and the wall time."""
    began = time.monotonic()
    done = subprocess.run(
        [
            sys.executable, "-m", "triage", "bisect", str(PAIRS), "--session", str(session),
            "--rungs", "resolution", "--json",
        ],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, timeout=560,
    )  # fmt: skip
    document: dict[str, Any] = json.loads(done.stdout)
    return document, time.monotonic() - began


def pair_launches(document: dict[str, Any]) -> list[tuple[str, ...]]:
    """What must be launched to show these pairs: the baseline, each half, each pair."""
    sets = [tuple(one["items"]) for one in document["sets"]]
    halves = [(key,) for items in sets for key in items]
    return [(), *halves, *sets]


def launched_in_full(keys: Sequence[str], folder: Path) -> tuple[str, float]:
    """A launch as a search makes it, to the first answer or to the failure."""
    search = prepare(PAIRS)
    problem = search.recipe.problem
    result = launch_once(search.setup, problem.config(keys), folder)
    return result.seen.value, result.capture.seconds


class State:
    """Launches that were made before, one a line: the table can be made in several sittings."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.known: dict[str, Any] = {}
        for line in map(json.loads, lines):
            self.known[line["what"]] = line["seen"]

    def keep(self, what: str, seen: object) -> None:
        self.known[what] = seen
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps({"what": what, "seen": seen}) + "\n")


def full_table(state: State, folder: Path, seconds: float = float("inf")) -> bool:
    """Launch what is not launched yet, for so many seconds; write the page once all is there."""
    until = time.time() + seconds
    rows = load()["sets"]

    def keep(row: Row, seen: Seen) -> None:
        state.keep(json.dumps(row), dataclasses.asdict(seen))

    pairs = compare(
        rows, folder, known=state.known, keep=keep, until=until, say=lambda p: say(told(p))
    )
    say(f"{sum(p.agree for p in pairs)} of {len(pairs)} agree; {len(rows) - len(pairs)} to go")
    saved = five_pairs(state, folder, until) if len(pairs) == len(rows) else None
    state.keep("agreed", [sum(p.agree for p in pairs), len(pairs)])
    state.keep("overridden", sum(map(is_override, pairs)))
    PAGE.write_text(page(pairs, len(rows), saved))
    return len(pairs) == len(rows) and saved is not None


def five_pairs(state: State, folder: Path, until: float) -> Saved | None:
    """The pairs of one recipe by asking and by launching; None if the time is over before."""
    document, asked_s = without_a_launch(folder / "session")
    launches = pair_launches(document)
    for number, keys in enumerate(launches):
        if " ".join(keys) not in state.known and time.time() < until:
            state.keep(" ".join(keys), launched_in_full(keys, folder / f"full-{number}"))
    shown = [state.known[" ".join(keys)] for keys in launches if " ".join(keys) in state.known]
    if len(shown) < len(launches):
        say(f"{len(launches) - len(shown)} launches of the pairs to go")
        return None
    saved = Saved(len(document["sets"]), asked_s, len(launches), sum(s for _, s in shown))
    say(f"{saved.launched_s:.0f} s of launches, {asked_s:.0f} s of asking: {saved.ratio:.1f} to 1")
    state.keep("saved", dataclasses.asdict(saved))
    state.keep("halves", [seen for seen, _ in shown[1 : 1 + 2 * saved.sets]])
    return saved


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        full_table(State(Path(sys.argv[1])), Path(scratch), float(sys.argv[2]))
