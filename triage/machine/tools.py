"""Programs that kernels are compiled with at run time, and their versions.

In:  the environment of the launch, the folders of its packages. Out: Tools.
Not: compiling anything.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from triage.core.machine.facts import Fact, Unavailable
from triage.core.machine.packages import Tool, Tools

_RELEASE = re.compile(r"release (\d+)\.(\d+)")
_USUAL = "/usr/local/cuda"


def tools(
    env: Mapping[str, str], packages: Sequence[str] = (), *, blackwell: bool = False
) -> Tools:
    """The tool chain as a server with this environment would find it.

    `packages` are the folders of its Python's packages; Triton has an assembler of its
    own for Blackwell.
    """
    home = env.get("CUDA_HOME", "") or env.get("CUDA_PATH", "")
    roots = [Path(home)] if home else []
    roots += [Path(_USUAL), *(p for f in packages for p in sorted(Path(f).glob("nvidia/cu*")))]
    nvcc = _program("nvcc", env, [root / "bin" for root in roots])
    beside = [Path(nvcc.path).parent] if isinstance(nvcc, Tool) else []
    return Tools(
        cuda_home=home,
        cuda_home_exists=bool(home) and Path(home).is_dir(),
        toolkit=_toolkit(roots, nvcc),
        nvcc=nvcc,
        ptxas=_ptxas(env, packages, blackwell=blackwell),
        compiler=_compiler(env),
        ninja=_program("ninja", env, [], versioned=False),
        cuobjdump=_program("cuobjdump", env, beside, versioned=False),
        cuda_headers=_headers(nvcc),
    )


def _program(
    name: str, env: Mapping[str, str], first: Sequence[Path], *, versioned: bool = True
) -> Fact[Tool]:
    path = next((str(p / name) for p in first if (p / name).is_file()), None)
    path = path or shutil.which(name, path=env.get("PATH", ""))
    if path is None:
        return Unavailable(f"no {name} in CUDA_HOME or PATH")
    return Tool(path=path, release=_release(path) if versioned else ())


def _release(path: str) -> Fact[tuple[int, ...]]:
    """The CUDA release that a compiler tells."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, check=False, timeout=5)
    except OSError as error:
        return Unavailable(f"{path}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Unavailable(f"{path} --version does not end")
    match = _RELEASE.search(done.stdout.decode(errors="replace"))
    return (int(match[1]), int(match[2])) if match else Unavailable(f"{path} tells no release")


def _toolkit(roots: Sequence[Path], nvcc: Fact[Tool]) -> str:
    """The version of the toolkit of the system, as its version file says, else as nvcc does."""
    for root in roots:
        try:
            return str(json.loads((root / "version.json").read_text())["cuda"]["version"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    if isinstance(nvcc, Tool) and not isinstance(nvcc.release, Unavailable):
        return ".".join(map(str, nvcc.release))
    return ""


def _ptxas(env: Mapping[str, str], packages: Sequence[str], *, blackwell: bool) -> Fact[Tool]:
    """The assembler that Triton takes: by variable, else its own, newer on Blackwell."""
    names = ["TRITON_PTXAS_BLACKWELL_PATH"] * blackwell + ["TRITON_PTXAS_PATH"]
    for name in names:
        if env.get(name):
            path = env[name]
            if not Path(path).is_file():
                return Unavailable(f"{name}={path} does not exist")
            return Tool(path=path, release=_release(path))
    for folder in packages:
        inside = Path(folder) / "triton/backends/nvidia/bin"
        for program in ["ptxas-blackwell"] * blackwell + ["ptxas"]:
            if (inside / program).is_file():
                return Tool(path=str(inside / program), release=_release(str(inside / program)))
    return Unavailable("triton is not installed")


def _compiler(env: Mapping[str, str]) -> Fact[Tool]:
    """The C compiler that Triton takes: CC, gcc or clang."""
    for name in filter(None, (env.get("CC"), "gcc", "clang")):
        if path := shutil.which(name, path=env.get("PATH", "")):
            return Tool(path=path, release=())
    return Unavailable("neither CC, gcc nor clang is found")


def _headers(nvcc: Fact[Tool]) -> Fact[bool]:
    """Whether cuda_fp8.h lies where this nvcc looks."""
    if isinstance(nvcc, Unavailable):
        return nvcc
    root = Path(nvcc.path).resolve().parents[1]
    places = (root / "include", *sorted(root.glob("targets/*/include")))
    return any((place / "cuda_fp8.h").is_file() for place in places)
