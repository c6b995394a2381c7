"""Checks of what compiles kernels at run time: nvcc, ptxas, a C compiler, headers, ninja.

In:  Facts. Out: CHECKS.
Not: what is compiled already (package_checks.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.core.doctor.checks import Hit, check
from triage.core.doctor.facts import Facts
from triage.core.doctor.gpu_checks import used
from triage.core.machine.facts import Unavailable, known, known_or
from triage.core.machine.packages import Tool

# Source: CUDA toolkit release notes: first release whose compiler knows the architecture
FIRST_TOOLKIT = {
    (9, 0): (11, 8),
    (10, 0): (12, 8),
    (10, 1): (12, 8),
    (10, 3): (12, 9),
    (12, 0): (12, 8),
    (12, 1): (12, 9),
}
FAMILY = (12, 9)  # sm_100f, the family target that DeepGEMM asks for on Blackwell
BLACKWELL = (10, 0)


def _needed(facts: Facts) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The newest architecture in use, and the first toolkit that knows it."""
    capabilities = [known_or(gpu.capability, (0, 0)) for gpu in used(facts)]
    newest = max(capabilities, default=(0, 0))
    first = FIRST_TOOLKIT.get(newest)
    return (newest, first) if first else None


def _compiles(facts: Facts) -> bool:
    """Whether this Python has anything that compiles kernels for the GPU at run time."""
    if not isinstance(facts.launch, Unavailable) and not facts.launch.on_gpu:
        return False
    return bool(known(facts.python).version_of("sglang", "vllm", "flashinfer-python"))


def _arch(capability: tuple[int, int]) -> str:
    return f"sm_{capability[0]}{capability[1]}"


def _number(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version[:2]))


@check(
    "nvcc",
    group="tools",
    severity="error",
    sound="there is a CUDA compiler, new enough for these GPUs",
    breaks="kernels that are compiled at run time cannot be: no nvcc, or an unknown architecture",
    source="https://github.com/sgl-project/sglang/pull/9340",
    prevents=("jit-toolchain-missing-nvcc", "jit-toolchain-nvcc-too-old"),
)
def nvcc(facts: Facts) -> Iterator[Hit]:
    """FlashInfer and DeepGEMM compile what their wheels do not bring."""
    needed = _needed(facts)
    compiler = facts.tools.nvcc
    if isinstance(compiler, Unavailable):
        python = facts.python
        ready = not isinstance(python, Unavailable) and python.version_of("flashinfer-jit-cache")
        if _compiles(facts) and known(python).version_of("flashinfer-python"):
            yield Hit(
                "There is no nvcc, and FlashInfer and DeepGEMM compile kernels at run time.",
                (compiler.reason,),
                "use the full image instead of the runtime image, or install the CUDA toolkit",
                "warning" if ready else None,
            )
        return
    if needed is None:
        return
    capability, first = needed
    version = known(compiler.release)
    if version[:2] < first:
        yield Hit(
            f"nvcc {_number(version)} does not know {_arch(capability)}.",
            (f"{compiler.path}: release {_number(version)}",
             f"{_arch(capability)} needs CUDA {_number(first)}"),
            f"install CUDA {_number(first)} or newer and set CUDA_HOME to it",
        )  # fmt: skip
    elif capability >= BLACKWELL and capability[0] == BLACKWELL[0] and version[:2] < FAMILY:
        yield Hit(
            f"nvcc {_number(version)} does not know the family target {_arch(capability)}f.",
            (
                f"{compiler.path}: release {_number(version)}",
                "DeepGEMM asks for sm_100f: CUDA 12.9",
            ),
            "install CUDA 12.9 or newer and set CUDA_HOME to it",
        )


@check(
    "nvcc-newer-than-driver",
    group="tools",
    severity="warning",
    sound="the driver loads what nvcc makes",
    breaks="kernels compiled at run time do not load on this driver",
    source="https://github.com/sgl-project/sglang/issues/7387",
    prevents=("jit-deepgemm-compile-failed",),
)
def nvcc_newer_than_driver(facts: Facts) -> Iterator[Hit]:
    """A toolkit of a later CUDA than the driver's."""
    driver = known(known(facts.gpus).cuda)
    version = known(known(facts.tools.nvcc).release)
    if _compiles(facts) and version[:2] > driver:
        yield Hit(
            f"nvcc {_number(version)} is newer than the driver's CUDA {_number(driver)}.",
            (f"{known(facts.tools.nvcc).path}: release {_number(version)}",
             f"driver {known(facts.gpus).driver}: CUDA {_number(driver)}"),
            f"install CUDA {_number(driver)} and set CUDA_HOME to it, or update the driver",
        )  # fmt: skip


@check(
    "ptxas",
    group="tools",
    severity="error",
    sound="Triton's assembler knows these GPUs",
    breaks="every Triton kernel fails to compile: sm_... is not defined for option gpu-name",
    source="https://github.com/triton-lang/triton/issues/8539",
    prevents=("triton-ptxas-unknown-arch",),
)
def ptxas(facts: Facts) -> Iterator[Hit]:
    """The assembler that Triton will use, from its wheel or from TRITON_PTXAS_PATH."""
    needed, tool = _needed(facts), known(facts.tools.ptxas)
    if needed is None:
        return
    capability, first = needed
    version = known(tool.release)
    if version[:2] < first:
        yield Hit(
            f"Triton's ptxas {_number(version)} does not know {_arch(capability)}.",
            (f"{tool.path}: release {_number(version)}",
             f"{_arch(capability)} needs {_number(first)}"),
            "export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas"
            "  # of a CUDA that is new enough",
        )  # fmt: skip


@check(
    "cuda-home",
    group="tools",
    severity="error",
    sound="CUDA_HOME names a folder",
    breaks="nvcc is called by a path that does not exist",
    source="https://github.com/vllm-project/vllm/issues/36077",
    prevents=("jit-toolchain-bad-cuda-home",),
)
def cuda_home(facts: Facts) -> Iterator[Hit]:
    """The variable is set to a list, or to a folder that is not there."""
    home = facts.tools.cuda_home
    if home and not facts.tools.cuda_home_exists:
        real = next((part for part in home.split(":") if part), "/usr/local/cuda")
        why = "is a list of folders" if ":" in home else "names no folder"
        yield Hit(f"CUDA_HOME {why}.", (f"CUDA_HOME={home}",), f"export CUDA_HOME={real}")


@check(
    "cuda-headers",
    group="tools",
    severity="error",
    sound="the toolkit has the headers that kernels include",
    breaks="compiling at run time fails: cuda_fp8.h: No such file or directory",
    source="https://github.com/sgl-project/sglang/issues/5389",
    prevents=("jit-toolchain-missing-headers",),
)
def cuda_headers(facts: Facts) -> Iterator[Hit]:
    """cuda_fp8.h beside the nvcc that is used."""
    compiler = known(facts.tools.nvcc)
    if _compiles(facts) and not known(facts.tools.cuda_headers):
        yield Hit(
            "The CUDA toolkit lacks cuda_fp8.h.",
            (f"{compiler.path}: release {_number(known_or(compiler.release, (0, 0)))}",),
            "install a toolkit from CUDA 11.8 on with its headers, and set CUDA_HOME to it",
        )


@check(
    "cuobjdump",
    group="tools",
    severity="warning",
    sound="the toolkit is whole",
    breaks="DeepGEMM cannot read what it compiled",
    source="https://github.com/llm-d/llm-d/pull/1386",
    prevents=("jit-toolchain-missing-binary",),
)
def cuobjdump(facts: Facts) -> Iterator[Hit]:
    """Nvcc without cuobjdump: a toolkit that an image has cut down."""
    compiler = known(facts.tools.nvcc)
    if _compiles(facts) and isinstance(facts.tools.cuobjdump, Unavailable):
        told = (f"{compiler.path} is there", facts.tools.cuobjdump.reason)
        yield Hit("The CUDA toolkit has no cuobjdump.", told, "apt install cuda-cuobjdump-12-9")


@check(
    "python-headers",
    group="tools",
    severity="error",
    sound="Triton can compile its launchers",
    breaks="the first Triton kernel fails: Python.h: No such file or directory",
    source="https://github.com/sgl-project/sglang/pull/18644",
    prevents=("jit-toolchain-missing-python-headers", "arch-registry-import-error",
              "gguf-moe-startup-chain"),
)  # fmt: skip
def python_headers(facts: Facts) -> Iterator[Hit]:
    """A C compiler, and the headers of the engine's Python."""
    python = known(facts.python)
    if not (python.version_of("triton") or python.version_of("sglang", "vllm")):
        return
    if not known(python.headers):
        number = ".".join(map(str, python.version[:2]))
        told = (f"no Python.h for {python.python} ({number})",)
        yield Hit("The headers of Python are missing.", told, f"apt install python{number}-dev")
    if isinstance(facts.tools.compiler, Unavailable):
        told = (facts.tools.compiler.reason,)
        yield Hit("There is no C compiler.", told, "apt install build-essential")


@check(
    "ninja",
    group="tools",
    severity="warning",
    sound="there is a build tool",
    breaks="extensions that are built at run time cannot be",
    source="https://github.com/sgl-project/sglang/issues/30122",
    prevents=("gguf-moe-startup-chain",),
)
def ninja(facts: Facts) -> Iterator[Hit]:
    """Ninja as a program, or as a package of the engine's Python."""
    python, tool = known(facts.python), facts.tools.ninja
    if _compiles(facts) and isinstance(tool, Unavailable) and not python.version_of("ninja"):
        yield Hit("There is no ninja.", (tool.reason,), "apt install ninja-build")


def described(tool: Tool) -> str:
    """A tool for a report."""
    return f"{tool.path} {_number(known_or(tool.release, (0, 0)))}"


CHECKS = (
    nvcc, nvcc_newer_than_driver, ptxas, cuda_home, cuda_headers, cuobjdump, python_headers, ninja,
)  # fmt: skip
