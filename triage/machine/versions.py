"""What a server runs with: packages, driver, CUDA, NCCL, variables. Cheap enough for each launch.

In:  the engine's Python, the variables of the launch. Out: Ran, a flat account to be compared.
Not: whether the packages go together (environment.py, triage.core.doctor).
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from triage.core.machine.facts import Unavailable, known_or
from triage.core.redact import redact_env
from triage.machine.environment import packages, search_path, torch_cuda
from triage.machine.gpus import NoNvmlError, open_nvml

# Variables whose values are kept; of all others the name alone.
ALLOWED = re.compile(
    r"(?:NCCL|SGLANG|SGL|CUDA|NVIDIA|NVSHMEM|TORCH|TORCHINDUCTOR|PYTORCH|TRITON|FLASHINFER|UCX|GLOO"
    r"|OMP|MKL|KMP|OPENBLAS|NUMEXPR|MALLOC|HF|TRANSFORMERS|SAFETENSORS|TOKENIZERS|DEEPEP|DEEP_EP"
    r"|DG|DEEPGEMM|MC|MOONCAKE|VLLM|RAY)_\w+"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|PATH|PYTHON\w+|VIRTUAL_ENV|CONDA_PREFIX|TMPDIR|XDG_CACHE_HOME"
    r"|LANG|LC_ALL|TZ|no_proxy|NO_PROXY"
)
_DRIVER = Path("/proc/driver/nvidia/version")
_NCCL = re.compile(r"nvidia-nccl-cu\d+")
_OWN = frozenset({"TRIAGE_LAUNCH", "TMPDIR"})  # another one for each launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """`missing` says why there are no packages, "" if there are; `names` have no value here."""

    python: str = ""
    python_version: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""
    system: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    def flat(self) -> dict[str, str]:
        """Every fact by its name; a variable without its value only says that it is set."""
        return {
            **{f"package {name}": version for name, version in self.packages.items()},
            **dict(self.system),
            **({"Python": f"{self.python} {self.python_version}".strip()} if self.python else {}),
            **{f"variable {name}": value for name, value in self.variables.items()},
            **{f"variable {name}": "(set)" for name in self.names},
        }


def ran_with(python: str | Unavailable, env: Mapping[str, str], *, gpus: bool) -> Ran:
    """The account of one launch.

    Args:
        python: The engine's interpreter, or why it is not known.
        env: The variables that it starts with.
        gpus: Whether it uses GPUs, so that the driver is asked.
    """
    variables = redact_env({n: v for n, v in env.items() if ALLOWED.fullmatch(n) and n not in _OWN})
    names = tuple(sorted(env.keys() - variables.keys() - _OWN))
    system = _system(gpus=gpus)
    if isinstance(python, Unavailable):
        return Ran(missing=python.reason, system=system, variables=variables, names=names)
    asked = _search_path(python, env.get("PYTHONPATH", ""), env.get("PYTHONHOME", ""))
    if isinstance(asked, Unavailable):
        return Ran(
            python=python, missing=asked.reason, system=system, variables=variables, names=names
        )
    version, folders = asked
    found = {name: every[0].version for name, every in packages(folders).items()}
    cuda = known_or(torch_cuda(folders), "")
    nccl = next((v for name, v in sorted(found.items()) if _NCCL.fullmatch(name)), "")
    more = {"CUDA of torch": cuda, "NCCL": nccl}
    return Ran(
        python=python,
        python_version=".".join(map(str, version)),
        packages=dict(sorted(found.items())),
        system={**system, **{name: text for name, text in more.items() if text}},
        variables=dict(sorted(variables.items())),
        names=names,
    )


@cache
def _search_path(
    python: str, path: str, home: str
) -> tuple[tuple[int, ...], tuple[Path, ...]] | Unavailable:
    """Version and folders of packages of a Python, which is asked once a process."""
    given = {"PYTHONPATH": path, "PYTHONHOME": home}
    asked = search_path(python, {name: text for name, text in given.items() if text})
    return asked if isinstance(asked, Unavailable) else asked[:2]


def _system(*, gpus: bool) -> dict[str, str]:
    found = {"kernel": platform.release(), "machine": platform.machine()}
    if gpus:
        found |= _driver()
    return found


@cache
def _driver() -> dict[str, str]:
    """NVIDIA's driver and the newest CUDA that it runs, from NVML, else from /proc."""
    try:
        with open_nvml() as nvml:
            driver, cuda = nvml.versions()
            return {n: v for n, v in (("NVIDIA driver", driver), ("CUDA of the driver", cuda)) if v}
    except NoNvmlError:
        pass
    try:
        words = _DRIVER.read_text(errors="replace").split()
    except OSError:
        return {}
    version = next((word for word in words if re.fullmatch(r"\d+\.\d+(\.\d+)?", word)), "")
    return {"NVIDIA driver": version} if version else {}
