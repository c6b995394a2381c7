"""Everything that the checks look at, in one value.

In:  facts of triage.core.machine, and the launch that is asked about. Out: Facts, Launch.
Not: reading them (triage.machine) or judging them (the modules beside this one).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from triage.core.config import Config, Value
from triage.core.machine.facts import Fact, Unavailable
from triage.core.machine.gpus import Cuda, Gpus
from triage.core.machine.host import BusyPort, Host, Lock, Place
from triage.core.machine.models import Hub, Model
from triage.core.machine.packages import Environment, Tools, release
from triage.core.records import dataclass

NO_COMMAND = Unavailable("no command or recipe was named", "triage doctor RECIPE")
NO_MODEL = Unavailable("the command names no checkpoint on this machine")
NO_DRAFT = Unavailable("the command names no draft model")
NO_HUB = Unavailable("the model is a folder, no name on the hub")
NO_CUDA = Unavailable("CUDA was not started", "triage doctor --deep")
NOT_ASKED = (NO_COMMAND, NO_MODEL, NO_DRAFT, NO_HUB, NO_CUDA)
# Spellings of older versions, which the flag table no longer knows.
_OLDER = {
    "tp-size": "tp",
    "pp-size": "pp",
    "dp-size": "dp",
    "ep-size": "ep",
    "speculative-algorithm": "speculative-algo",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launch that is asked about: flags as they are typed, and its whole environment.

    `program` is what stands before the flags, `cwd` the folder it is started in.
    `wrapper` are the words that start a container around it.
    `problems` are what the engine will refuse in the command line, as its reader found it;
    `unknown` are flags of no known version.
    """

    config: Config
    env: Mapping[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ()
    cwd: str = "."
    wrapper: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def get(self, name: str) -> Value | None:
        """A flag's value, also under a name that the flag table does not know, or None."""
        values = self.config.flag_values()
        for spelling in (name, f"--{name}", f"--{_OLDER.get(name, name)}"):
            if spelling in values:
                return values[spelling]
        return None

    def text(self, name: str) -> str:
        """A flag's value as text; "" if it is not set or a switch."""
        value = self.get(name)
        return value if isinstance(value, str) else ""

    def on(self, name: str) -> bool:
        """Whether a switch is set."""
        return self.get(name) not in (None, False)

    def number(self, name: str, usual: int) -> int:
        """A flag's value as a whole number, or what is usual."""
        text = self.text(name)
        return int(text) if text.isascii() and text.isdigit() else usual

    @property
    def tp(self) -> int:
        """Ranks of a tensor-parallel group."""
        return max(1, self.number("tp-size", 1))

    @property
    def nodes(self) -> int:
        """Machines of the launch."""
        return max(1, self.number("nnodes", 1))

    @property
    def local_ranks(self) -> int:
        """Worker processes on this machine; DP attention runs inside the TP group."""
        replicas = 1 if self.on("enable-dp-attention") else max(1, self.number("dp-size", 1))
        everywhere = self.tp * max(1, self.number("pp-size", 1)) * replicas
        return max(1, everywhere // self.nodes)

    @property
    def is_engine(self) -> bool:
        """Whether an engine is started, and no script or program of another kind."""
        return any("sglang" in word or "vllm" in word for word in self.program)

    @property
    def on_gpu(self) -> bool:
        """Whether it is an engine that will want an NVIDIA GPU."""
        return self.is_engine and self.text("device") in ("", "cuda")

    @property
    def uses_deepep(self) -> bool:
        """Whether tokens go between experts by DeepEP, over NVSHMEM."""
        return "deepep" in self.text("moe-a2a-backend") or self.on("enable-deepep-moe")

    @property
    def uses_rdma(self) -> bool:
        """Whether memory is registered with a network card."""
        apart = self.text("disaggregation-mode") not in ("", "null")
        return self.nodes > 1 or apart or self.uses_deepep

    @property
    def nvls(self) -> bool:
        """Whether NCCL will try NVLink SHARP.

        SGLang's own server sets NCCL_NVLS_ENABLE=0 unless it is asked for; others leave
        NCCL's own choice, which is to try.
        """
        if self.on("enable-nccl-nvls") or self.on("enable-symm-mem"):
            return True
        chosen = self.env.get("NCCL_NVLS_ENABLE", "")
        own = any(word in {"sglang.launch_server", "sglang"} for word in self.program)
        return chosen not in ("", "0") or (not own and chosen != "0" and bool(self.program))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A machine, the engine's Python on it, and the launch that is asked about."""

    host: Host
    gpus: Fact[Gpus]
    python: Fact[Environment]
    tools: Tools
    places: tuple[Place, ...]
    locks: Fact[tuple[Lock, ...]]
    launch: Fact[Launch] = NO_COMMAND
    ports: Fact[tuple[BusyPort, ...]] = NO_COMMAND
    model: Fact[Model] = NO_COMMAND
    draft: Fact[Model] = NO_DRAFT
    hub: Fact[Hub] = NO_COMMAND
    cuda: Fact[Cuda] = NO_CUDA
    env: Mapping[str, str] = field(default_factory=dict)

    def engine_version(self) -> tuple[int, ...]:
        """The version of the installed SGLang as numbers; () if there is none."""
        if isinstance(self.python, Unavailable):
            return ()
        return release(self.python.version_of("sglang"))
