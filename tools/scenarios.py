"""The scenarios that record_cases.py can play.

In:  scenarios.yaml. Out: Scenario values, by name.
Not: launching (record_cases.py).
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from triage.yamlfile import load_yaml

FILE = Path(__file__).with_name("scenarios.yaml")
DIST_PORT = 29511  # as a scenario's flags name it
COMMON_FLAGS = (
    "--device cpu --attention-backend torch_native --mem-fraction-static 0.1"
    " --disable-overlap-schedule"
)
# A crash ends within seconds instead of a minute.
COMMON_ENV = {"SGLANG_CUDA_COREDUMP_BEFORE_CRASH": "0", "SGLANG_PYSPY_DUMP_BEFORE_CRASH": "0"}


class Strict(BaseModel):
    """What every model here is: no unknown key, no conversion, no change."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Expect(Strict):
    """What a classifier must say: names and values of triage.diagnosis/1."""

    outcome: Literal["failed", "healthy", "hung", "interrupted"]
    cause: str | None
    phase: str | None = None
    ranks: tuple[str, ...] | None = None
    ranks_total: int | None = None


class Scenario(Strict):
    """One launch: what is started, what is done to it, when its log is cut, what it shows.

    With `stubs` the engine runs its own models on the stand-in for vLLM; with
    `native` its own models without it, which lack a module; else Transformers'.
    """

    name: str  # the fixture's folder
    note: str
    expect: Expect
    root: str | None = None  # a piece of the decisive line; null: there must be no root
    flags: str = ""  # after the common ones
    model: str = "tiny"  # a folder of .models; with a slash, a hub id
    tokens: str | int | None = 4096  # --max-total-tokens; null leaves it to the engine
    stubs: bool = False
    native: bool = False
    ranks: int = 1  # that share this machine's two cores
    env: dict[str, str] = Field(default_factory=dict)
    memory_mib: int | None = None  # limit of a memory cgroup around the whole launch
    at: str = ""  # the line at which `do` is done
    do: (
        Literal["kill-scheduler", "interrupt", "mute-listener", "http-listener", "dist-listener"]
        | None
    ) = None
    until: Literal["exit", "ready", "silent", "elapsed"] = "exit"
    seconds: float = 40.0  # of silence, or since the start

    def command_flags(self) -> str:
        """All flags but the model and the port, as typed."""
        parts = [COMMON_FLAGS]
        if self.tokens is not None:
            parts.append(f"--max-total-tokens {self.tokens}")
        if not (self.stubs or self.native):
            parts.append("--model-impl transformers")
        return " ".join([*parts, self.flags]).strip()

    def environment(self) -> dict[str, str]:
        """Variables beyond the recorder's own."""
        env = COMMON_ENV | self.env
        if self.ranks > 1:  # no NCCL to load, and a core for each rank
            cores = "|".join(str(rank % 2) for rank in range(self.ranks))
            env |= {
                "SGLANG_NCCL_SO_PATH": "/nonexistent/libnccl.so",
                "SGLANG_CPU_OMP_THREADS_BIND": cores,
            }
        return env

    def typed(self) -> str:
        """The command as a person would type it, paths as they are in the fixture."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment().items()]
        model = self.model if "/" in self.model else f"/models/{self.model}"
        program = f"python -m sglang.launch_server --model-path {model}"
        return " ".join([*variables, program, self.command_flags()])


class Scenarios(Strict):
    """The whole file: scenarios in its order, and the SGLang that they are played with."""

    schema_: Literal["triage.scenarios/1"] = Field(alias="schema")
    engine_version: str
    scenarios: tuple[Scenario, ...]

    def by_name(self) -> dict[str, Scenario]:
        """Fixture folder -> scenario."""
        return {scenario.name: scenario for scenario in self.scenarios}


def load_scenarios() -> Scenarios:
    """The checked content of scenarios.yaml."""
    return load_yaml(FILE, Scenarios)
