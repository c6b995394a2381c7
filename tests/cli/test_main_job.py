"""The main job at the command line, on the simulated engine: bisect to runbook, and its interruptions."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, is_an_error
from traces import Descendants, alive, children_of, gone

from triage.core.handover.proposals import Basis
from triage.core.phases import order
from triage.replay.landscape import Ending, write_landscape
from triage.session.proven import proven

ROOT = Path(__file__).parents[2]
KIMI = ROOT / "recipes/kimi-k2.6-b300.yaml"
SERIES = ROOT / "recipes/series-4flags.yaml"
LANDSCAPE = ROOT / "fixtures/landscapes/kimi-k2.6-b300.yaml"
EP, NVLS, FUSION = "ep-size", "enable-nccl-nvls", "enable-flashinfer-allreduce-fusion"
FAST = ("--engine", "replay", "--speed", "400")
pytestmark = pytest.mark.real


def journal(session: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (session / "journal.jsonl").read_text().splitlines()]


def recipe_of(
    folder: Path,
    flags: tuple[str, ...],
    weights: Mapping[str, float] | None = None,
    goal: str = "best",
) -> Path:
    """A recipe for a landscape of switches in the same folder."""
    wanted = "".join(f"  - {{flag: {f}, weight: {(weights or {}).get(f, 1)}}}\n" for f in flags)
    path = folder / "r.yaml"
    path.write_text(
        "schema: triage.recipe/1\nname: test\nengine: replay\nlandscape: l.yaml\nspeed: 1000\n"
        "launch: {patience: {silent: 5m, total: 60m}}\n"
        f"baseline: {{flags: {{model-path: /m}}}}\nwanted:\n{wanted}goal: {goal}\n"
        "budget: {trials: 40, hours: 1}\n"
    )
    return path


def error(name: str, phase: str) -> Ending:
    return Ending(ends="exception", phase=phase, exception="ValueError", message=f"{name} is wrong")


def test_the_founding_case_keeps_nvls_and_drops_ep_and_fusion(founding: Path) -> None:
    found = json.loads((founding / "recommendation.json").read_text())
    kept = {c["flag"]: c["value"] for c in found["keep"]}
    assert kept == {
        "model-path": "/models/Kimi-K2.6", "tp-size": 8, "speculative-algorithm": "DDTREE", NVLS: True,
    }  # fmt: skip
    assert {c["flag"] for c in found["drop"]} == {EP, FUSION}
    assert found["simulated"] is True


def test_the_founding_case_has_three_sets_with_three_causes(founding: Path) -> None:
    found = json.loads((founding / "recommendation.json").read_text())
    sets = {
        s["cause"]: (set(s["items"]), s["phase"], s["minimal"], s["assumed"]) for s in found["sets"]
    }
    assert sets == {
        "nonetype-capture-batch-field": ({EP}, "graph-capture", True, False),
        "cublas-mla-absorb-bmm": ({EP, NVLS}, "flashinfer-autotune", True, False),
        "flashinfer-allreduce-rendezvous-hang": ({FUSION}, "graph-capture", True, True),
    }


def test_ep_alone_is_another_failure_under_the_search_for_cublas(founding: Path) -> None:
    trials = {frozenset(t["items"]): t for t in journal(founding)}
    alone = trials[frozenset({EP})]
    assert alone["searching"] == "cublas-mla-absorb-bmm"
    assert alone["verdict"] == "OTHER_FAILURE"
    assert trials[frozenset({EP, NVLS})]["verdict"] == "SAME_FAILURE"
    assert trials[frozenset({NVLS})]["verdict"] == "STARTS"


def test_all_three_causes_of_the_founding_case_take_five_launches_beside_the_two_ends(
    founding: Path,
) -> None:
    """The recipe as it is shipped, with what the diagnoses point at."""
    found = json.loads((founding / "recommendation.json").read_text())
    assert len(found["sets"]) == 3
    assert all(s["minimal"] for s in found["sets"])
    trials = journal(founding)
    assert [t["suspects"] != [] for t in trials] == [t["seen"] == "fails" for t in trials]
    assert len(trials) - 2 <= 5


def test_two_failures_in_series_are_named_in_four_launches_and_the_best_in_three(
    triage: Run, tmp_path: Path
) -> None:
    """The recipe as it is shipped: everything but expert parallelism can be had."""
    found: dict[str, Any] = {}
    for goal, most in (("best", 3), ("all", 4)):
        done = triage(
            "bisect", SERIES, "--speed", "1000", "--goal", goal, "--session", goal, "--json"
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert {c["flag"] for c in found["drop"]} == {EP}, goal
        assert len(journal(tmp_path / goal)) - 2 <= most, goal
    assert {s["cause"]: (set(s["items"]), s["minimal"]) for s in found["sets"]} == {
        "nonetype-capture-batch-field": ({EP}, True),
        "cublas-mla-absorb-bmm": ({EP, NVLS}, True),
    }


def test_the_best_of_the_founding_case_is_proved_in_three_launches_beside_the_two_ends(
    triage: Run, tmp_path: Path
) -> None:
    done = triage("bisect", KIMI, *FAST, "--goal", "best", "--session", "s", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {c["flag"] for c in found["drop"]} == {EP, FUSION}
    assert len(journal(tmp_path / "s")) <= 5
    said = json.dumps(found["claim"])
    assert "if adding a flag never repairs a failure" in said
    assert not any(s["minimal"] for s in found["sets"]), "what was not asked is not claimed"
    assert "Suspected: " in said


def test_what_started_is_proposed_first_and_what_holds_a_failing_set_not_at_all(
    founding: Path, triage: Run
) -> None:
    found = proven(founding)
    first, *rest = found.found.options
    assert first.basis is Basis.LAUNCHED
    assert first.config == found.recommendation.config
    assert set(first.given_up) == {EP, FUSION}
    assert all(option.trial for option in rest), "what would keep more has EP, which fails alone"
    document = json.loads(triage("recommend", founding, "--json").stdout)
    assert document["schema"] == "triage.recommendation/1"
    pasted = document["proposals"][0]
    assert pasted["trial"] == document["proof"] == first.trial
    assert "--ep-size" not in pasted["command"]
    assert "-  --ep-size 8" in pasted["diff"].splitlines()
    text = triage("recommend", founding).stdout
    assert "not tried here" not in text
    assert "\nwhat is proposed, as a diff:\n" in text
    assert pasted["command"].strip() in text


def test_what_nobody_tried_and_keeps_more_is_told_beside_what_started(
    triage: Run, tmp_path: Path
) -> None:
    """A flag takes memory that the KV pool lacks; to give the pool more keeps the flag."""
    full = Ending(
        ends="exception",
        phase="kv-pool-init",
        exception="RuntimeError",
        message="Not enough memory. Please try to increase --mem-fraction-static.",
    )
    starts = Ending(ends="starts")
    write_landscape(tmp_path / "l.yaml", {frozenset(): starts, frozenset({FUSION}): full})
    done = triage("bisect", recipe_of(tmp_path, (FUSION,)), "--session", "s")
    assert done.returncode == 0, done.stderr
    found = proven(tmp_path / "s")
    untried = [option for option in found.found.options if option.trial is None]
    assert untried
    assert all(option.weight < found.found.options[0].weight for option in untried)
    assert "not tried here, would keep more" in triage("recommend", "s").stdout


def test_the_runbook_says_simulated_and_keeps_recorded_and_assumed_apart(founding: Path) -> None:
    page = (founding / "runbook.md").read_text()
    assert page.startswith("# Runbook: kimi-k2.6-b300 (simulated)\n")
    recorded, assumed = page.split("Assumed, not recorded from any launch:")
    numbers = {t["number"] for t in journal(founding) if t["provenance"] == "assumed"}
    by_items = {frozenset(t["items"]): t["number"] for t in journal(founding)}
    assert numbers == {
        number
        for items, number in by_items.items()
        if FUSION in items and items != {EP, NVLS, FUSION}
    }
    assert f"| {FUSION} | OTHER_FAILURE |" in assumed
    assert f"| {FUSION} | OTHER_FAILURE |" not in recorded
    for told in ("--enforce-disable-flashinfer-allreduce-fusion", "--flashinfer-allreduce-fusion-backend",
                 "3,795 tok/s", "reported by the founding case", "fork of SGLang"):  # fmt: skip
        assert told in page, told
    pasted = re.search(r"To paste:\n\n```sh\n(.*)\n```", page)
    assert pasted is not None
    assert pasted[1] == (
        "python -m sglang.launch_server --model-path /models/Kimi-K2.6 --enable-nccl-nvls "
        "--speculative-algorithm DDTREE --tp-size 8"
    )


def test_every_line_of_a_simulated_launch_says_so(founding: Path) -> None:
    logs = sorted(founding.glob("*/*/server.log"))
    assert len(logs) == len(journal(founding)) + 1  # and that of the confirmation
    for log in logs:
        assert all(line.startswith(b"simulated | ") for line in log.read_bytes().splitlines()), log


def test_kill_9_leaves_nothing_and_the_same_command_resumes(triage: Run, tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "triage",
        "bisect",
        str(KIMI),
        "--engine",
        "replay",
        "--speed",
        "60",
    ]
    first = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".triage/*/trials/003/server.log")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    while len(ours := children_of(first.pid)) < 4:  # the guard, the launcher and some ranks
        assert time.monotonic() < deadline
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    gone(ours)

    (session,) = tmp_path.glob(".triage/*")
    had = journal(session)
    assert [t["number"] for t in had] == [1, 2]
    done = triage("bisect", KIMI, "--engine", "replay", "--speed", "400")
    assert done.returncode == 0
    assert "resumed with 2 finished trials" in done.stderr
    assert list(tmp_path.glob(".triage/*")) == [session]
    assert journal(session)[:2] == had
    assert len(journal(session)) == 7


def test_ctrl_c_ends_the_launch_and_exits_130(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "triage",
        "bisect",
        str(KIMI),
        "--engine",
        "replay",
        "--speed",
        "20",
    ]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".triage/*/trials/001/server.log")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    ours = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=90)
    assert process.returncode == 130
    assert talk.splitlines()[-2].startswith("error: interrupted")
    assert "Traceback" not in talk
    assert alive(ours) == []


def test_a_baseline_that_does_not_start_is_said_to(triage: Run, tmp_path: Path) -> None:
    write_landscape(
        tmp_path / "l.yaml",
        {
            frozenset(): error("base", "weight-load"),
            frozenset({"flag-a"}): error("base", "weight-load"),
        },
    )
    done = triage("bisect", recipe_of(tmp_path, ("flag-a",)))
    assert done.returncode == 11
    assert "the configuration that was said to start fails: v1:" in done.stderr
    (log,) = re.findall(r"try: triage classify (\S+)", done.stderr)
    assert triage("classify", log).returncode == 11


def test_a_bad_command_that_starts_is_said_to(triage: Run, tmp_path: Path) -> None:
    starts = Ending(ends="starts")
    write_landscape(tmp_path / "l.yaml", {frozenset(): starts, frozenset({"flag-a"}): starts})
    is_an_error(
        triage("bisect", recipe_of(tmp_path, ("flag-a",))),
        13,
        r"said to fail starts: there is nothing to bisect",
    )


def test_a_configuration_without_an_entry_is_unresolved_and_never_recommended(
    triage: Run, tmp_path: Path
) -> None:
    starts = Ending(ends="starts")
    write_landscape(
        tmp_path / "l.yaml",
        {
            frozenset(): starts,
            frozenset({"flag-a", "flag-b"}): error("x", "weight-load"),
            frozenset({"flag-b"}): starts,
        },
    )
    done = triage(
        "bisect",
        recipe_of(tmp_path, ("flag-a", "flag-b"), {"flag-a": 5}),
        "--session",
        "s",
        "--json",
    )
    assert done.returncode == 12
    lost = [t for t in journal(tmp_path / "s") if t["items"] == ["flag-a"]]
    assert [t["verdict"] for t in lost] == ["UNRESOLVED", "UNRESOLVED"]
    found = json.loads(done.stdout)
    assert {c["flag"] for c in found["drop"]} == {"flag-a"}
    assert [s["minimal"] for s in found["sets"]] == [False]


def test_the_budget_ends_the_search(triage: Run, tmp_path: Path) -> None:
    done = triage("bisect", KIMI, *FAST, "--trials", "3", "--session", "s")
    assert done.returncode == 12
    assert "All 3 trials are spent" in done.stderr
    assert len(journal(tmp_path / "s")) == 3


def test_a_dry_run_launches_nothing(triage: Run, tmp_path: Path) -> None:
    done = triage("bisect", KIMI, "--dry-run")
    assert done.returncode == 0
    assert "launch 1: the baseline" in done.stdout
    assert "python -m sglang.launch_server --model-path /models/Kimi-K2.6" in done.stdout
    assert not (tmp_path / ".triage").exists()


def test_a_unit_and_a_script_make_a_search_and_the_runbook_answers_as_a_unit(
    triage: Run, tmp_path: Path
) -> None:
    (tmp_path / "good.service").write_text(
        "[Service]\nExecStart=/usr/bin/python3 -m sglang.launch_server \\\n  --model-path /models/Kimi-K2.6 \\\n"
        "  --tp 8 \\\n  --speculative-algorithm DDTREE \\\n  --port 30000\nRestart=always\n"
    )
    (tmp_path / "bad.sh").write_text(
        "python3 -m sglang.launch_server --model-path /models/Kimi-K2.6 --tp 8 --speculative-algorithm DDTREE "
        "--ep 8 --enable-nccl-nvls --port 30000\n"
    )
    done = triage(
        "bisect", "--good", "good.service", "--bad", "bad.sh", *FAST, "--landscape", LANDSCAPE
    )
    assert done.returncode == 0, done.stderr
    page = Path(tmp_path / triage("runbook").stdout.split("\n")[0]).read_text()
    unit = re.search(r"To paste:\n\n```ini\n(.*?)```", page, re.S)
    assert unit is not None
    assert unit[1].startswith("[Service]\nExecStart=/usr/bin/python3 -m sglang.launch_server \\\n")
    assert "--enable-nccl-nvls" in unit[1]
    assert "--ep" not in unit[1]
    assert "--port 30000" in unit[1]
    assert unit[1].rstrip().endswith("Restart=always")


def test_the_answer_is_on_stdout_and_the_talk_on_stderr(triage: Run, tmp_path: Path) -> None:
    starts = Ending(ends="starts")
    write_landscape(
        tmp_path / "l.yaml",
        {frozenset(): starts, frozenset({"flag-a"}): error("x", "graph-capture")},
    )
    done = triage("bisect", recipe_of(tmp_path, ("flag-a",)), "--json")
    document = json.loads(done.stdout)
    assert next(iter(document)) == "schema"
    assert document["schema"] == "triage.recommendation/1"
    assert done.stdout.count("\n") == 1
    assert "\x1b" not in done.stdout + done.stderr, "no colour where there is no terminal"
    trials = [line for line in done.stderr.splitlines() if line.startswith("trial ")]
    assert [re.sub(r"[\d.]+ s\b", "N s", line.partition("  why: ")[0]) for line in trials] == [
        "trial 1/2  the baseline  STARTS  (simulated, recorded, N s)"
        "  left: at most 1 more launch, N s",
        f"trial 2/2  + flag-a  FAILS  {document['sets'][0]['signature']} in graph-capture"
        "  (simulated, recorded, N s)  left: nothing more to launch",
    ]
    assert all(line.partition("  why: ")[2] for line in trials)


@pytest.mark.parametrize("seed", range(3))
def test_a_random_landscape_is_followed_by_real_launches(
    triage: Run, tmp_path: Path, seed: int
) -> None:
    """The same as the pure test of the planner, once more with processes, logs and fingerprints."""
    import random
    from itertools import combinations

    draw = random.Random(seed)
    flags = tuple(f"flag-{c}" for c in "abc")
    weights = {f: draw.randint(1, 9) for f in flags}
    phases = draw.sample(["dist-init", "weight-load", "kv-pool-init", "graph-capture"], 2)
    causes = [
        (frozenset(draw.sample(flags, size)), phase)
        for size, phase in zip((2, draw.choice((1, 2))), sorted(phases, key=order), strict=True)
    ]
    subsets = [frozenset(s) for n in range(4) for s in combinations(flags, n)]

    def ending(keys: frozenset[str]) -> Ending:
        for number, (items, phase) in enumerate(causes):
            if items <= keys:
                return error(f"reason{chr(97 + number)}", phase)
        return Ending(ends="starts")

    table = {keys: ending(keys) for keys in subsets}
    write_landscape(tmp_path / "l.yaml", table)
    done = triage("bisect", recipe_of(tmp_path, flags, weights, "all"), "--session", "s", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    starting = [keys for keys in subsets if table[keys].ends == "starts"]
    heaviest = max(sum(weights[f] for f in keys) for keys in starting)
    assert found["weight"]["kept"] == heaviest
    for one in found["sets"]:
        keys = frozenset(one["items"])
        assert table[keys].ends == "exception"
        assert all(table[keys - {f}] != table[keys] for f in keys)
    assert len({s["signature"] for s in found["sets"]}) == len(
        {
            table[k].message
            for k in subsets
            if frozenset(k) in {frozenset(t["items"]) for t in journal(tmp_path / "s")}
            and table[k].ends != "starts"
        }
    )


def test_the_look_for_leftovers_finds_what_is_left(tmp_path: Path) -> None:
    """The check of the end-to-end tests can fail: a daemon and a file in shared memory."""
    name = f"triage-test-{os.getpid()}"
    code = (
        "import os, time\nif os.fork() == 0:\n os.setsid(); time.sleep(60)\n"
        f"open('/dev/shm/{name}', 'w').close(); time.sleep(1)"
    )
    try:
        with Descendants() as descendants:
            subprocess.run([sys.executable, "-c", code], check=True)
        left = descendants.left()
        assert [what.partition(" ")[0] for what in left] == ["process", f"/dev/shm/{name}"]
    finally:
        Path("/dev/shm", name).unlink(missing_ok=True)
        for what in descendants.left():
            os.kill(int(what.removeprefix("process ")), signal.SIGKILL)
    time.sleep(0.1)
    assert descendants.left() == []
