"""Launch one configuration and say what was seen.

In:  a Setup (program, environment, patience) and a Config. Out: Seen in a TrialResult.
Not: choosing what to launch (triage.core.search.plan) or keeping it (triage.store).
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from triage.core.config import Config, SetEnv, SetFlag, UnsetEnv, apply, argv
from triage.core.diagnosis import Diagnosis
from triage.core.diff.confounded import moved_besides
from triage.core.launch import (
    Capture,
    Crashed,
    Hung,
    Interrupted,
    Job,
    LaunchSpec,
    Outcome,
    Patience,
    Place,
    Process,
    Ready,
)
from triage.core.search.hints import hinted_levels
from triage.core.trials import Entry, Problem, Seen, Trial
from triage.finder import fast
from triage.launch import Server, free_port, launch
from triage.session.evidence import Gathering, in_its_light, read_evidence, read_exits, read_said
from triage.session.logs import causes, classify, diff_rules, flag_table, with_stacks
from triage.session.places import listening_address, placed
from triage.session.release import await_release, memory_used

# Where triage puts its own server; the user's values belong to the node's
# service and come back in the runbook's command.
_OURS = ("host", "port")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How every launch of an investigation is made; only the Config differs.

    `sources` are the user's own commands, by role: a unit that is launched as it
    stands is made from one.
    """

    program: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: Path
    patience: Patience
    engine: str
    place: Place = field(default_factory=Process)
    sources: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[int, ...] = ()  # the GPUs that it may have, where several launches share them

    def within(self, seconds: float) -> Setup:
        """The same for a launch that may take at most so long, though a second at least."""
        total = max(1.0, min(self.patience.total_s, seconds))
        return replace(self, patience=replace(self.patience, total_s=total))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """One launch with its diagnosis; `seen` says what it proves."""

    capture: Capture
    diagnosis: Diagnosis
    seen: Seen
    reason: str = ""  # why it is unresolved
    held: str = ""  # a process or GPU memory that did not go, in a sentence


def replay_setup(setup: Setup, landscape: Path, speed: float) -> Setup:
    """The same investigation on the simulated engine, `speed` times as fast.

    Patience never falls below 2 s: processes of a busy machine are not faster
    because the simulated weights are.
    """
    patience = setup.patience
    return replace(
        setup,
        engine="replay",
        program=(
            sys.executable,
            "-m",
            "triage.replay",
            "--landscape",
            str(landscape.absolute()),
            "--speed",
            f"{speed:g}",
            "--",
        ),
        patience=Patience(
            silent_s=max(2.0, patience.silent_s / speed),
            total_s=max(20.0, patience.total_s / speed),
            settle_s=patience.settle_s,
            phases={name: max(2.0, s / speed) for name, s in patience.phases.items()},
        ),
    )


def launch_once(
    setup: Setup,
    config: Config,
    folder: Path,
    *,
    unset: Sequence[str] = (),
    while_ready: Callable[[Server], None] | None = None,
    say: Callable[[str], None] | None = None,
    stop_grace_s: float = 10.0,
    ended: Callable[[], bool] | None = None,
) -> TrialResult:
    """Launch `config` on a free port of the loopback and read its log.

    `unset` names variables that the launch must not have, not even from the user's shell.
    `ended` tells a launch in a thread, which no signal reaches, that it has to end.

    Raises:
        HostError: the launch could not be made on this machine.
        KeyboardInterrupt: somebody interrupted it; nothing of it is left.
    """
    from triage.core.log.live import Live

    with free_port() as port:
        address = listening_address(setup.place)
        ours = apply(config.without(_OURS), (SetFlag("host", address), SetFlag("port", str(port))))
        spec = LaunchSpec(
            argv=(*setup.program, *argv(ours)),
            env=_environment(setup, config, unset),
            unset_env=tuple(unset),
            cwd=str(setup.cwd),
            port=port,
            engine=setup.engine,
            patience=setup.patience,
            place=placed(setup.place, ours, setup.sources),
        )
        on_gpus = setup.engine != "replay" and not isinstance(setup.place, Job)
        before = memory_used() if on_gpus else {}
        if setup.devices:  # the others are another launch's
            before = {gpu: used for gpu, used in before.items() if gpu in setup.devices}
        watcher = Live(causes(), finder=fast)
        with Gathering(
            spec, folder, lambda: watcher.phase, setup.program, devices=setup.devices
        ) as gathering:
            capture = launch(
                spec,
                folder,
                watcher,
                while_ready=gathering.asking(while_ready),
                on_event=say,
                stop_grace_s=stop_grace_s,
                ended=ended,
            )
            evidence = gathering.finish(capture)
        held = "; ".join(capture.stuck) + " does not end" if capture.stuck else ""
        held = held or await_release(before, say)
    diagnosis = with_stacks(classify(capture.log, outcome=capture.outcome), capture.stacks)
    diagnosis = in_its_light(diagnosis, capture.exits, evidence, capture.said)
    seen, reason = what_is_seen(capture, diagnosis)
    return TrialResult(capture=capture, diagnosis=diagnosis, seen=seen, reason=reason, held=held)


def _environment(setup: Setup, config: Config, unset: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Variables of the setup without these, and those of the config on top."""
    common = apply(Config.of({}, dict(setup.env)), map(UnsetEnv, unset))
    env = apply(common, (SetEnv(n, v) for n, v in config.env))
    if setup.devices:
        env = apply(env, (SetEnv("CUDA_VISIBLE_DEVICES", ",".join(map(str, setup.devices))),))
    return env.env


def what_is_seen(capture: Capture, diagnosis: Diagnosis) -> tuple[Seen, str]:
    """What a launch proves about its configuration, and the reason if it proves nothing."""
    if diagnosis.refused:
        return Seen.UNRESOLVED, diagnosis.refused
    match capture.outcome:
        case Ready():
            return Seen.STARTS, ""
        case Interrupted(by=by):
            return Seen.UNRESOLVED, f"interrupted by {by}"
        case Hung(limit="total") if diagnosis.cause is None:
            return Seen.UNRESOLVED, "the total patience ended before the launch did"
        case Crashed() if diagnosis.signature == "none":
            said = diagnosis.title or "the server ended without a line that says why"
            return Seen.UNRESOLVED, said
        case _:
            if any(cause.id == diagnosis.cause and cause.transient for cause in causes()):
                return Seen.UNRESOLVED, f"{diagnosis.cause} says nothing about the flags"
            return Seen.FAILS, ""


def ended_by_us(result: TrialResult) -> bool:
    """Whether nothing but the total time that we gave it ended the launch."""
    match result.capture.outcome:
        case Hung(limit="total"):
            return True
        case _:
            return False


def stored_outcome(folder: Path) -> Outcome | None:
    """How a launch of an earlier run ended, from what it left in its folder; None if unknown."""
    kinds: dict[str, type[Ready | Crashed | Hung | Interrupted]] = {
        "ready": Ready,
        "crashed": Crashed,
        "hung": Hung,
        "interrupted": Interrupted,
    }
    try:
        stored = json.loads((folder / "exit.json").read_bytes())
        return kinds[stored["how"]](**stored["outcome"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stored_diagnosis(folder: Path) -> Diagnosis:
    """Why a stored launch failed, read again from everything that it left in its folder.

    Raises:
        HostError: its log cannot be read.
    """
    outcome, stacks = stored_outcome(folder), folder / "stacks.txt"
    told = classify(str(folder / "server.log"), outcome=outcome)
    told = with_stacks(told, str(stacks) if stacks.is_file() else "")
    return in_its_light(told, read_exits(folder), read_evidence(folder), read_said(folder))


def entry_of(
    number: int, trial: Trial, problem: Problem, result: TrialResult, journal: Sequence[Entry]
) -> Entry:
    """The journal entry of a finished trial, compared with those before it."""
    diagnosis = result.diagnosis
    failed = result.seen is Seen.FAILS
    effective = dict(diagnosis.effective)
    return Entry(
        number=number,
        items=trial.items,
        seen=result.seen,
        why=trial.why,
        searching=trial.searching,
        signature=diagnosis.signature if failed else None,
        cause=diagnosis.cause if failed else None,
        title=diagnosis.title if failed else "",
        phase=diagnosis.phase,
        ranks=diagnosis.ranks if failed else (),
        seconds=round(result.capture.seconds, 2),
        reason=result.reason,
        provenance=provenance_of(diagnosis),
        simulated=diagnosis.simulated,
        early=failed and not any(step.phase == "weight-load" for step in diagnosis.timeline),
        config=problem.config(trial.items),
        effective=effective,
        moved=moved_besides(
            trial.items, problem, effective, journal, rules=diff_rules(), table=flag_table()
        ),
        suspects=(
            *(suspect.flag for suspect in diagnosis.suspects),
            *hinted_levels(problem, (c for advice in diagnosis.remedies for c in advice.changes)),
        ),
        log_digest=_digest(Path(result.capture.log)),
    )


def _digest(log: Path) -> str:
    """SHA-256 of a log of any size, which is not held in memory."""
    with log.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def provenance_of(diagnosis: Diagnosis) -> str:
    """What an answer rests on: a real launch, or what the simulated engine says of its own."""
    return diagnosis.provenance or ("assumed" if diagnosis.simulated else "launched")
