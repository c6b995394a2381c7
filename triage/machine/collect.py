"""All facts of this machine for the checks, and of the launch that is asked about.

In:  a Launch or none, ports that are taken. Out: Facts.
Not: judging (triage.core.doctor) or reading commands and recipes (triage.session.doctor).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from triage.core.doctor.facts import NO_COMMAND, NO_CUDA, NO_DRAFT, NO_HUB, NO_MODEL, Facts, Launch
from triage.core.machine.facts import Fact, Unavailable, known_or
from triage.core.machine.host import BusyPort, Host
from triage.core.machine.models import Hub, Model
from triage.core.machine.packages import Environment, Tools
from triage.machine.checkpoint import hub, model
from triage.machine.cuda import cuda
from triage.machine.disks import extension_locks, places
from triage.machine.environment import environment
from triage.machine.gpus import gpus
from triage.machine.host import host, unknown_host
from triage.machine.patience import Reading
from triage.machine.tools import tools

PATIENCE_S = 5.0
DRIVER = "the driver"
SIMULATED = Unavailable("the simulated engine does not use it")
ELSEWHERE = Unavailable("the launch is made on another machine")
INSIDE = Unavailable("it is inside a container that does not run yet")


def collect(
    launch: Fact[Launch] = NO_COMMAND,
    *,
    ports: Fact[tuple[BusyPort, ...]] = NO_COMMAND,
    python: str = "",
    root: Path = Path("/"),
    ask_hub: bool = False,
    ask_cuda: bool = False,
    contained: bool = False,
) -> Facts:
    """Everything that can be read; nothing of it raises.

    `python` is the engine's interpreter if the launch does not tell. `ask_hub` allows one
    request to the model hub, `ask_cuda` to start CUDA in a process of its own.
    `contained`: the launch starts a container, whose packages and folders are not this
    machine's.
    """
    env: Mapping[str, str] = os.environ if isinstance(launch, Unavailable) else launch.env
    asked = None if isinstance(launch, Unavailable) or contained else launch
    other = INSIDE if contained else NO_COMMAND
    # Side by side: each may wait for a driver, a disk or a name server.
    cards = Reading(DRIVER, gpus, PATIENCE_S)
    own = Reading("the host", lambda: host(root), PATIENCE_S)
    inside = Reading(
        "Python",
        lambda: INSIDE if contained else environment(python or interpreter(launch), env, root),
        2 * PATIENCE_S,
    )
    disks = Reading("a disk", lambda: places(env), PATIENCE_S)
    locks = Reading("a disk", lambda: extension_locks(env), PATIENCE_S)
    target = Reading("the checkpoint", lambda: _model(asked, "model-path", other), PATIENCE_S)
    draft = Reading(
        "the draft", lambda: _model(asked, "speculative-draft-model-path", other), PATIENCE_S
    )
    named = Reading("the hub", lambda: _hub(asked, other, ask=ask_hub), 2 * PATIENCE_S)
    found, packages = cards.fact(), inside.fact()
    blackwell = not isinstance(found, Unavailable) and any(
        known_or(gpu.capability, (0, 0))[0] >= 10  # noqa: PLR2004
        for gpu in found.devices
    )
    asked_cuda = ask_cuda and not isinstance(found, Unavailable)
    starting = Reading("CUDA", lambda: cuda(env), 2 * PATIENCE_S + 1) if asked_cuda else None
    folders = () if isinstance(packages, Unavailable) else _folders(packages)
    machine = own.fact()
    chain = no_tools(INSIDE) if contained else tools(env, folders, blackwell=blackwell)
    around = unknown_host(machine) if isinstance(machine, Unavailable) else machine
    return Facts(
        host=_around(around) if contained else around,
        gpus=found,
        python=packages,
        tools=chain,
        places=() if contained else known_or(disks.fact(), ()),
        locks=INSIDE if contained else locks.fact(),
        launch=launch,
        ports=ports,
        model=target.fact(),
        draft=draft.fact(),
        hub=named.fact(),
        cuda=starting.fact() if starting else NO_CUDA,
        env=dict(os.environ),
    )


def machine_facts(root: Path = Path("/"), why: Unavailable = SIMULATED) -> Facts:
    """What machine this is, and no more: of the rest nothing matters to what is launched."""
    cards = Reading(DRIVER, gpus, PATIENCE_S)
    own = Reading("the host", lambda: host(root), PATIENCE_S).fact()
    return Facts(
        host=unknown_host(own) if isinstance(own, Unavailable) else own,
        gpus=cards.fact(),
        python=why,
        tools=no_tools(why),
        places=(),
        locks=why,
    )


def no_tools(why: Unavailable) -> Tools:
    """A tool chain of which nothing can be said."""
    return Tools(
        cuda_home="", cuda_home_exists=False, toolkit="", nvcc=why, ptxas=why,
        compiler=why, ninja=why, cuobjdump=why, cuda_headers=why,
    )  # fmt: skip


def _around(host: Host) -> Host:
    """The host of a container that does not run yet: what is the container's own is not known."""
    return replace(
        host, glibc=INSIDE, shm=INSIDE, segments=INSIDE, memlock_kib=INSIDE, nofile=INSIDE,
        addresses=INSIDE, mempolicy=INSIDE, clone3=INSIDE, numa_allowed=INSIDE, devices=INSIDE,
        compat_libcuda=(),
    )  # fmt: skip


def _model(launch: Launch | None, flag: str, other: Unavailable) -> Fact[Model]:
    if launch is None:
        return NO_DRAFT if "draft" in flag and other == NO_COMMAND else other
    name = launch.text(flag)
    if not name:
        return NO_DRAFT if "draft" in flag else NO_MODEL
    return model(name, launch.env, Path(launch.cwd))


def _hub(launch: Launch | None, other: Unavailable, *, ask: bool) -> Fact[Hub]:
    if launch is None:
        return other
    name = launch.text("model-path")
    return hub(name, launch.env, Path(launch.cwd), ask=ask) if name else NO_HUB


def _folders(inside: Environment) -> tuple[str, ...]:
    """The folders that hold packages, in the order of the search path."""
    every = (package.folder for found in inside.packages.values() for package in found)
    return tuple(dict.fromkeys(every))


def interpreter(launch: Fact[Launch]) -> str:
    """The Python that a launch would run: its first word, else the first on the PATH."""
    if not isinstance(launch, Unavailable):
        path = launch.env.get("PATH", os.defpath)
        for word in launch.program:
            name = word.rpartition("/")[2]
            if name.startswith("python"):
                if "/" in word:
                    return str(Path(launch.cwd) / word)
                return shutil.which(word, path=path) or word
            if name in ("sglang", "vllm"):
                script = shutil.which(word, path=path)
                return _shebang(script) if script else word
    return shutil.which("python3") or sys.executable


def _shebang(script: str) -> str:
    """The interpreter that a console script names."""
    try:
        with open(script, "rb") as file:  # noqa: PTH123
            first = file.readline(500)
    except OSError:
        return script
    words = first.removeprefix(b"#!").split()
    return words[-1].decode(errors="replace") if first.startswith(b"#!") and words else script
