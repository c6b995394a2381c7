"""Launch one configuration in full, as often as asked, and check what it does.

In:  a Candidate and a Wish. Out: a Confirmation.
Not: finding the candidate (candidate.py, handover.py) or judging a check (core.handover.checks).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from triage import __version__
from triage.core.config import Config
from triage.core.diagnosis import Diagnosis
from triage.core.gpu_symptoms import STEADY_S, GpuReport
from triage.core.handover import checks
from triage.core.handover.checks import Reply
from triage.core.handover.confirmation import Check, Confirmation, Exchange, Start, why_not
from triage.core.handover.load import Level
from triage.core.handover.served import Served, read_served
from triage.core.launch import Crashed, Hung, Interrupted, Ready
from triage.launch import Server
from triage.launch.load import Load, put_load, require_client
from triage.machine.sampler import Sampler, driver_version
from triage.session.logs import causes, flag_table
from triage.session.trial import Setup, TrialResult, launch_once, provenance_of
from triage.store import SessionFolder

# Short prompts of different kinds; a server that answers only its warm-up prompt fails one.
PROMPTS = ("The capital city of France is", "1, 2, 3, 4,")
TOKENS = 24
FLAKY_STARTS = 3  # where what is known says that a start may fail by chance
STOP_GRACE_S = 30.0  # two pipeline stages of SGLang 0.5.23 took 19 s to end
MOST_LOG = 64 << 20
FOLDER = "confirmation"
MARGIN_S = 2.0  # beyond what a steady reading takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked of a confirmation; `repeat` None leaves it to what is known."""

    repeat: int | None = None
    levels: tuple[int, ...] = ()
    load: Load = field(default_factory=Load)
    any_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One configuration, ready to be launched. `flaky`: starts of it may fail by chance."""

    setup: Setup
    config: Config
    unset: tuple[str, ...] = ()
    items: frozenset[str] = frozenset()
    simulated: bool = False
    flaky: bool = False
    command: str = ""  # as it may be shown


@dataclass
class _Found:
    """What one start showed while it was up."""

    ready_s: float | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    replies: dict[str, Reply] = field(default_factory=dict)
    notes: list[dict[str, object]] = field(default_factory=list)
    info: object = None
    models: object = None
    metrics: str = ""
    levels: list[Level] = field(default_factory=list)
    gpus: GpuReport | None = None
    worked_s: float | None = None  # seconds from the start until the work with it was over


@dataclass(frozen=True)
class _Made:
    """One start that was made: what it was, what it showed, and how it was read."""

    start: Start
    found: _Found
    result: TrialResult | None
    folder: Path


def prove(
    session: SessionFolder,
    candidate: Candidate,
    wish: Wish,
    say: Callable[[str], None],
    *,
    first: int = 1,
) -> Confirmation:
    """Launch until it is clear: the launches are in `confirmation/NNN/` of the session.

    `first` is the number of the first start's folder.

    Raises:
        HostError: a launch could not be made on this machine, or aiohttp is missing.
        KeyboardInterrupt: somebody interrupted it; nothing of the launch is left.
    """
    if wish.levels:
        require_client()
    date = datetime.now().astimezone().isoformat(timespec="seconds")
    made: list[_Made] = []
    planned = wish.repeat or (FLAKY_STARTS if candidate.flaky else 1)
    while len(made) < planned and not _hopeless(made):
        number = len(made) + 1
        if planned > 1:
            say(f"start {number} of {planned}")
        full = not any(one.start.up for one in made)
        folder = session.trial_folder(first + number - 1, name=FOLDER)
        made.append(_start(session, folder, candidate, wish if full else Wish(), say))
        last = made[-1]
        if not last.start.up:
            say(f"start {number}: {last.start.reason}")
        if wish.repeat is None and last.result is not None and by_chance(last.result.diagnosis):
            planned = max(planned, FLAKY_STARTS)
    return _judged(candidate, wish, made, date)


def _hopeless(made: list[_Made]) -> bool:
    """Whether the first two starts failed alike: a third would only take its time."""
    signatures = [one.result.diagnosis.signature if one.result else "none" for one in made]
    return (
        len(made) > 1
        and not any(one.start.up for one in made)
        and len(set(signatures)) == 1
        and not any(one.result and by_chance(one.result.diagnosis) for one in made)
    )


def by_chance(diagnosis: Diagnosis) -> bool:
    """Whether the cause is one of the machine's or the moment's, not of the configuration."""
    return any(cause.transient for cause in causes() if cause.id == diagnosis.cause)


def _start(
    session: SessionFolder,
    folder: Path,
    candidate: Candidate,
    wish: Wish,
    say: Callable[[str], None],
) -> _Made:
    """One start in full, ended again."""
    found = _Found()
    began = time.monotonic()

    def work(server: Server) -> None:
        found.ready_s = round(time.monotonic() - began, 2)
        _ask(server, found)
        if wish.levels:
            _put_loads(server, candidate, wish, found, say)
        for path, name in (("/server_info", "info"), ("/v1/models", "models")):
            setattr(found, name, _told(server, path))
        found.info = found.info or _told(server, "/get_server_info")
        metrics = _told(server, "/metrics")
        found.metrics = metrics if isinstance(metrics, str) else ""
        found.worked_s = time.monotonic() - began

    result: TrialResult | None = None
    try:
        result = launch_once(
            candidate.setup,
            candidate.config,
            folder,
            unset=candidate.unset,
            while_ready=work,
            say=say,
            stop_grace_s=STOP_GRACE_S,
        )
        reason = _why_down(result)
    except OSError as error:  # of a request: the launch itself raises errors of ours
        reason = f"the server did not answer a request: {error}"
    start = Start(
        folder=str(folder.relative_to(session.path)),
        ready_s=found.ready_s,
        reason=reason,
        cause=result.diagnosis.cause if result and reason else None,
    )
    return _Made(start, found, result, folder)


def _ask(server: Server, found: _Found) -> None:
    """Each prompt twice, at temperature 0."""
    for prompt in PROMPTS:
        answers = []
        for _ in range(2):
            text, ids, notes = server.ask(prompt, TOKENS)
            answers.append(text or " ".join(map(str, ids)))
            found.replies.setdefault(prompt, Reply(text, ids))
            found.notes.append(notes)
        found.exchanges.append(Exchange(prompt=prompt, answers=(answers[0], answers[1])))


def _put_loads(
    server: Server,
    candidate: Candidate,
    wish: Wish,
    found: _Found,
    say: Callable[[str], None],
) -> None:
    """The levels one after the other; the GPUs are read during each, the last one is kept.

    Where there are GPUs, a level lasts as long as a steady reading takes.
    """
    measured = not candidate.simulated
    for concurrency in wish.levels:
        say(f"load {concurrency}: {max(wish.load.requests, concurrency)} requests")
        with Sampler(server.pids, link_peak=_link_peak) as sampler:
            least_s = min(STEADY_S + MARGIN_S, wish.load.seconds) if sampler.reads else 0.0
            load = replace(wish.load, least_s=least_s)
            level = put_load(server, concurrency, load, measured=measured, say=say)
        found.levels.append(level)
        if measured:
            found.gpus = sampler.report(level.tokens)
        if level.errors or not level.answered:
            break


def _link_peak(gpu: str) -> float | None:
    """Bytes a second and direction of this GPU's links, as far as it is known."""
    from triage.knowledge.physics import gpu_part

    part = gpu_part(gpu)
    return None if part is None else float(part.link_bytes_per_s.value)


def _told(server: Server, path: str) -> object:
    """What the server answers there, None if it does not."""
    try:
        return server.get(path)
    except OSError:
        return None


def _judged(candidate: Candidate, wish: Wish, made: list[_Made], date: str) -> Confirmation:
    shown = next((one for one in made if one.start.up), made[0])
    found, result = shown.found, shown.result
    log = _log(shown.folder)
    served = read_served(
        info=found.info,
        models=found.models,
        metrics=found.metrics,
        notes=found.notes,
        log=log,
    )
    checked = _checks(shown, candidate, wish, served) if shown.start.up else ()
    starts = tuple(one.start if one is shown else _with_answers(one) for one in made)
    return Confirmation(
        config=candidate.config,
        ready_s=found.ready_s,
        exchanges=tuple(found.exchanges),
        folder=shown.start.folder,
        simulated=candidate.simulated,
        provenance=provenance_of(result.diagnosis) if result else "launched",
        reason=why_not(checked, starts),
        items=candidate.items,
        checks=checked,
        starts=starts,
        levels=tuple(found.levels),
        gpus=found.gpus,
        date=date,
        versions=_versions(served, result),
        command=candidate.command,
    )


def _with_answers(made: _Made) -> Start:
    """A further start: one whose answers differ is none that came up."""
    if made.start.up and not all(e.agree for e in made.found.exchanges):
        return replace(made.start, reason="the two answers at temperature 0 do not agree")
    return made.start


def _checks(shown: _Made, candidate: Candidate, wish: Wish, served: Served) -> tuple[Check, ...]:
    """Every check of the start that came up, in the order in which a person reads them."""
    found = shown.found
    any_text = wish.any_text or served.random_weights
    done = [
        checks.ready_check(found.ready_s or 0.0),
        checks.answers_check(found.exchanges),
        checks.text_check(found.replies, any_text=any_text),
        checks.accept_check(served),
        checks.pool_check(served),
        checks.config_check(candidate.config, served, flag_table()),
        checks.load_check(found.levels, wish.levels),
        _stop(shown),
    ]
    return tuple(check for check in done if check is not None)


def _stop(shown: _Made) -> Check:
    """How the launch ended, from what it left in its folder."""
    try:
        told: dict[str, Any] = json.loads((shown.folder / "exit.json").read_bytes())
    except (OSError, ValueError):
        told = {}
    worked_s, seconds = shown.found.worked_s, None
    if worked_s is not None and shown.result is not None:
        seconds = max(0.0, shown.result.capture.seconds - worked_s)
    return checks.stop_check(
        exit_code=told.get("exit_code"),
        seconds=seconds,
        stuck=tuple(map(str, told.get("stuck", ()))),
        removed=len(told.get("removed", ())),
    )


def _versions(served: Served, result: TrialResult | None) -> tuple[tuple[str, str], ...]:
    """What ran, as far as it says so."""
    diagnosis = result.diagnosis if result else None
    engine = diagnosis.engine if diagnosis else "unknown"
    version = served.version or (diagnosis.engine_version if diagnosis else None)
    found = {
        engine if engine != "unknown" else "engine": version or "",
        "NVIDIA driver": driver_version(),
        "triage": __version__,
    }
    return tuple((name, value) for name, value in found.items() if value)


def _log(folder: Path) -> str:
    try:
        with (folder / "server.log").open("rb") as file:
            return file.read(MOST_LOG).decode(errors="replace")
    except OSError:
        return ""


def _why_down(result: TrialResult) -> str:
    """Why a launch confirms nothing; "" if it came up and stayed up."""
    told = result.diagnosis
    failure = told.cause or told.fingerprint or "no line says why"
    if told.cause and told.title:
        failure = f"{told.cause}: {told.title.rstrip('.')}"
    match result.capture.outcome:
        case Ready():
            return ""
        case Crashed(reason=reason) if reason:
            return f"the launch failed: {reason}"
        case Crashed():
            return f"the launch failed this time ({failure})"
        case Hung(silent_s=silent):
            return f"the launch fell silent for {silent:.0f} s ({failure})"
        case Interrupted(by=by):
            return f"the launch was interrupted by {by}"
