"""All facts of this machine for the checks, and of the launch that is asked about.

In:  a Launch or none, ports that are taken. Out: Facts.
Not: judging (triage.core.doctor) or reading commands and recipes (triage.session.doctor).
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from triage.core.doctor.facts import NO_COMMAND, NO_DRAFT, NO_HUB, NO_MODEL, Facts, Launch
from triage.core.machine.facts import Fact, Unavailable, known_or
from triage.core.machine.gpus import DRIVER_SILENT, Gpus
from triage.core.machine.host import BusyPort
from triage.core.machine.models import Hub, Model
from triage.core.machine.packages import Environment, Tools
from triage.machine.checkpoint import hub, model
from triage.machine.disks import extension_locks, places
from triage.machine.environment import environment
from triage.machine.gpus import gpus
from triage.machine.host import host
from triage.machine.tools import tools

PATIENCE_S = 5.0
SIMULATED = Unavailable("the simulated engine does not use it")
INSIDE = Unavailable("it is inside a container that does not run yet")


def collect(
    launch: Fact[Launch] = NO_COMMAND,
    *,
    ports: Fact[tuple[BusyPort, ...]] = NO_COMMAND,
    python: str = "",
    root: Path = Path("/"),
    ask_hub: bool = False,
    contained: bool = False,
) -> Facts:
    """Everything that can be read; nothing of it raises.

    `python` is the engine's interpreter if the launch does not tell. `ask_hub` allows one
    request to the model hub. `contained`: the launch starts a container, whose packages and
    folders are not this machine's.
    """
    env: Mapping[str, str] = os.environ if isinstance(launch, Unavailable) else launch.env
    found = _within_patience()
    blackwell = not isinstance(found, Unavailable) and any(
        known_or(gpu.capability, (0, 0))[0] >= 10  # noqa: PLR2004
        for gpu in found.devices
    )
    inside = INSIDE if contained else environment(python or interpreter(launch), env, root)
    folders = () if isinstance(inside, Unavailable) else _folders(inside)
    asked = None if isinstance(launch, Unavailable) or contained else launch
    other = INSIDE if contained else NO_COMMAND
    return Facts(
        host=host(root),
        gpus=found,
        python=inside,
        tools=tools(env, folders, blackwell=blackwell),
        places=places(env),
        locks=extension_locks(env),
        launch=launch,
        ports=ports,
        model=_model(asked, "model-path") if asked else other,
        draft=_model(asked, "speculative-draft-model-path") if asked else other,
        hub=_hub(asked, ask=ask_hub) if asked else other,
        env=dict(os.environ),
    )


def simulated_facts(root: Path = Path("/")) -> Facts:
    """What machine this is, and no more: nothing is launched that would depend on it."""
    return Facts(
        host=host(root),
        gpus=_within_patience(),
        python=SIMULATED,
        tools=Tools(
            cuda_home="", cuda_home_exists=False, toolkit="", nvcc=SIMULATED, ptxas=SIMULATED,
            compiler=SIMULATED, ninja=SIMULATED, cuobjdump=SIMULATED, cuda_headers=SIMULATED,
        ),
        places=(),
        locks=SIMULATED,
    )  # fmt: skip


def _model(launch: Launch, flag: str) -> Fact[Model]:
    name = launch.text(flag)
    if not name:
        return NO_DRAFT if "draft" in flag else NO_MODEL
    return model(name, launch.env)


def _hub(launch: Launch, *, ask: bool) -> Fact[Hub]:
    name = launch.text("model-path")
    return hub(name, launch.env, ask=ask) if name else NO_HUB


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


def _within_patience() -> Fact[Gpus]:
    """NVML's answer, or that there is none in time: a driver that hangs must not hang us."""
    answer: list[Fact[Gpus]] = []
    asking = threading.Thread(target=lambda: answer.append(gpus()), daemon=True)
    try:
        asking.start()
    except RuntimeError:  # no thread may be started here, which a check tells
        return gpus()
    asking.join(PATIENCE_S)
    if not answer:
        return Unavailable(DRIVER_SILENT, "nvidia-smi")
    return answer[0]
