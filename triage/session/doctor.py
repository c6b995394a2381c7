"""Examine this machine, and a launch that is asked about, before anything is launched.

In:  a recipe or a command file, or nothing. Out: Examination; what a search shows at its start.
Not: reading facts (triage.machine) or judging them (triage.core.doctor).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from triage.command import read_command_file
from triage.core.config import Config
from triage.core.doctor.catalogue import BEFORE_A_SEARCH, CHECKS
from triage.core.doctor.checks import Check, Finding, Outcome, examine, findings
from triage.core.doctor.facts import NO_COMMAND, Facts, Launch
from triage.core.machine.facts import Fact, Unavailable
from triage.core.machine.host import BusyPort
from triage.errors import HostError, UsageError, hint
from triage.launch.sockets import holder, listeners
from triage.machine.collect import ELSEWHERE, SIMULATED, collect, machine_facts
from triage.recipe import load_recipe
from triage.session.logs import flag_table

if TYPE_CHECKING:
    from triage.session.search import Search

DEFAULT_PORT = 30_000  # Source: SGLang 0.5.23, server_args.py
BOOTSTRAP_PORT = 8998
SERVER = ("python3", "-m", "sglang.launch_server")  # of a file that holds flags only


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What was found on this machine; `target` is the file that named the launch, or ""."""

    target: str
    facts: Facts
    outcomes: tuple[Outcome, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is wrong, worst first."""
        return findings(self.outcomes)


def doctor(
    target: Path | None, *, python: str = "", deep: bool = False, root: Path = Path("/")
) -> Examination:
    """Examine the machine, and the launch of a recipe or a command file if one is named.

    Raises:
        UsageError: the file is neither.
    """
    launch: Fact[Launch] = NO_COMMAND
    contained = False
    if target is not None:
        launch, contained = _launch_of(target)
    ports = NO_COMMAND if isinstance(launch, Unavailable) else busy_ports(launch)
    facts = collect(
        launch,
        ports=ports,
        python=python,
        root=root,
        ask_hub=deep,
        ask_cuda=deep,
        contained=contained,
    )
    return Examination(target=str(target or ""), facts=facts, outcomes=examine(facts, CHECKS))


def _launch_of(target: Path) -> tuple[Launch, bool]:
    """The launch that a file describes, and whether it happens in a container of its own."""
    if not target.is_file() and str(target) != "-":
        raise UsageError(f"{target} does not exist", hint=hint("ls", target.parent))
    if str(target) != "-" and "triage.recipe/" in target.read_text(errors="replace")[:4000]:
        recipe = load_recipe(target, flag_table())
        config = recipe.problem.config(recipe.problem.keys())
        launch = _launch(config, dict(recipe.env), recipe.command, recipe.cwd)
        boxed = recipe.target == "container"
        return replace(launch, wrapper=recipe.container if boxed else ()), boxed
    command = read_command_file(target, flag_table())
    unknown = tuple(note for note in command.notes if " is no flag of " in note)
    launch = replace(
        _launch(command.config, {}, command.program or SERVER, Path(command.cwd or ".")),
        wrapper=command.wrapper,
        problems=command.problems,
        unknown=unknown,
    )
    return launch, bool(command.wrapper)


def _launch(
    config: Config,
    env: Mapping[str, str],
    program: tuple[str, ...],
    cwd: Path,
) -> Launch:
    whole = {**os.environ, **env, **config.env_values()}
    return Launch(config=config, env=whole, program=program, cwd=str(cwd))


def busy_ports(launch: Launch) -> tuple[BusyPort, ...]:
    """The ports of a launch that somebody listens on already."""
    wanted = [launch.number("port", DEFAULT_PORT)]
    _, _, rendezvous = launch.text("dist-init-addr").rpartition(":")
    if rendezvous.isdigit() and launch.number("node-rank", 0) == 0:
        wanted.append(int(rendezvous))
    wanted += [p for p in (launch.number("nccl-port", 0), launch.number("grpc-port", 0)) if p]
    if launch.text("disaggregation-mode") == "prefill":
        wanted.append(launch.number("disaggregation-bootstrap-port", BOOTSTRAP_PORT))
    found = []
    for port in dict.fromkeys(wanted):
        for listener in listeners(port)[:1]:
            pids = (int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit())
            pid = holder(listener, pids)
            found.append(BusyPort(port=port, pid=pid, command=_command(pid)))
    return tuple(found)


def _command(pid: int) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()[:120]


def before_search(search: Search) -> Examination:
    """The checks that matter to a search, quickly: of the whole wanted configuration.

    What is launched elsewhere, or simulated, does not depend on this machine: its facts are
    noted and not judged.
    """
    recipe = search.recipe
    if search.replay is not None or recipe.target == "slurm":
        why = ELSEWHERE if search.replay is None else SIMULATED
        return Examination(target="", facts=machine_facts(why=why), outcomes=())
    config = recipe.problem.config(recipe.problem.keys())
    launch = _launch(config, dict(recipe.env), recipe.command, recipe.cwd)
    boxed = recipe.target == "container"
    launch = replace(launch, wrapper=recipe.container if boxed else ())
    facts = collect(launch, ask_cuda=True, contained=boxed)
    return Examination(target="", facts=facts, outcomes=examine(facts, _relevant(launch)))


def _relevant(launch: Launch) -> tuple[Check, ...]:
    """All quick checks for an engine; for another program, those of the machine alone.

    An engine on the CPU fails over no GPU.
    """
    if launch.is_engine and not launch.on_gpu:
        return tuple(c for c in BEFORE_A_SEARCH if c.group not in ("gpus", "links"))
    if launch.is_engine:
        return BEFORE_A_SEARCH
    return tuple(check for check in BEFORE_A_SEARCH if check.hardware)


def hardware_errors(found: Examination) -> tuple[Finding, ...]:
    """Faults of the machine, with which no search for flags makes sense."""
    return tuple(f for f in found.findings if f.hardware and f.severity == "error")


def machine_faults() -> tuple[Finding, ...]:
    """Faults of this machine's hardware: what a single launch is told of before it is made."""
    facts = machine_facts()
    return findings(examine(facts, (check for check in CHECKS if check.hardware)))


def refuse(found: Examination) -> None:
    """Do not search while the machine is at fault.

    Raises:
        HostError: with the command that mends it.
    """
    faults = hardware_errors(found)
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise HostError(
            f"no flags are searched for while the machine is at fault: {faults[0].say}{more}"
            " --no-doctor searches all the same",
            hint=faults[0].fix,
        )
