"""Checks of the engine's Python: do the packages agree with each other and with the driver?

In:  Facts. Out: CHECKS.
Not: the programs that kernels are compiled with (tool_checks.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from triage.core.doctor.checks import Hit, check
from triage.core.doctor.facts import Facts
from triage.core.doctor.pins import broken
from triage.core.machine.facts import Unavailable, known, known_or
from triage.core.machine.packages import Environment, Package, release

FLASHINFER = ("flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache")
# Whose requirements are held against what is installed.
PINNING = ("sglang", "torch", "torchvision", "torchaudio", "sglang-kernel", "sgl-kernel", "vllm")
# Packages with compiled code against torch, or with an interface that the engine calls.
DECISIVE = frozenset({
    "torch", "torchvision", "torchaudio", "triton", "transformers", "tokenizers", "sglang-kernel",
    "sgl-kernel", "flashinfer-python", "flashinfer-cubin", "xgrammar", "apache-tvm-ffi",
    "compressed-tensors", "sgl-deep-gemm", "sgl-deep-ep", "sgl-flash-mla", "torchao",
})  # fmt: skip
# Source: sgl-project/sglang PR 11360 (0.5.4) and PR 17766 (0.5.8): which cuBLAS gets which scale
GATED_SINCE, GATED_BY_BOTH_NAMES = (0, 5, 4), (0, 5, 8)
STRICT_CUBLAS = (12, 9)
DATA_CENTRE = ("A100", "A800", "A30", "A40", "A10", "H100", "H200", "H800", "H20", "B100", "B200",
               "B300", "GB200", "GB300", "GH200", "L4", "L40", "V100", "T4", "Tesla")  # fmt: skip


@check(
    "flashinfer-versions",
    group="packages",
    severity="error",
    sound="the FlashInfer packages are of one version",
    breaks="kernels are called with arguments of another version: garbage or a crash",
    source="https://github.com/sgl-project/sglang/pull/28786",
    prevents=("flashinfer-version-mismatch", "flashinfer-allreduce-fusion-failed"),
)
def flashinfer_versions(facts: Facts) -> Iterator[Hit]:
    """flashinfer-python, -cubin and -jit-cache, compared without what follows a plus."""
    python = known(facts.python)
    found = {name: python.version_of(name) for name in FLASHINFER if python.version_of(name)}
    if len({version.split("+")[0] for version in found.values()}) > 1:
        wanted = found.get("flashinfer-python", "")
        wrong = [f"{name}=={wanted}" for name in found if name != "flashinfer-python"]
        yield Hit(
            "The FlashInfer packages are of different versions.",
            tuple(f"{name} {version}" for name, version in found.items()),
            f"{python.python} -m pip install --no-deps {' '.join(wrong)}"
            " --extra-index-url https://flashinfer.ai/whl/",
        )


@check(
    "pins",
    group="packages",
    severity="error",
    sound="packages have the versions that the engine was built with",
    breaks="imports fail, or kernels of another torch crash",
    source="https://github.com/sgl-project/sglang/issues/5100",
    prevents=("sgl-kernel-torch-abi", "sgl-kernel-common-ops-load", "flashinfer-version-mismatch",
              "torchvision-mismatch", "transformers-config-conflict", "sgl-kernel-too-old"),
)  # fmt: skip
def pins(facts: Facts) -> Iterator[Hit]:
    """Requirements of the engine and of torch's family against what is installed."""
    python = known(facts.python)
    for owner in PINNING:
        for package in python.packages.get(owner, ()):
            # SGLang's own images put newer libraries of NVIDIA over those that torch pins.
            wrong = [
                w
                for w in broken(package, python.packages, python.version)
                if not w.name.startswith("nvidia-")
            ]
            loud = [w for w in wrong if w.name in DECISIVE]
            quiet = [w for w in wrong if w.name not in DECISIVE]
            for group, severity in ((loud, None), (quiet, "warning")):
                if group:
                    wanted = " ".join(f"'{w.requirement}'" for w in group)
                    yield Hit(
                        f"{owner} {package.version} asks for other versions than are installed.",
                        tuple(f"{w.requirement} is asked for, {w.installed} is installed"
                              for w in group),
                        f"{python.python} -m pip install {wanted}",
                        severity,  # type: ignore[arg-type]  # a literal of two branches
                    )  # fmt: skip


@check(
    "torch-build",
    group="packages",
    severity="error",
    sound="torch is built for CUDA",
    breaks="the engine finds no accelerator",
    source="https://github.com/sgl-project/sglang/issues/7547",
    prevents=("no-accelerator",),
)
def torch_build(facts: Facts) -> Iterator[Hit]:
    """A torch for the CPU on a machine with GPUs, or under a command that wants one."""
    python = known(facts.python)
    if known(python.torch_cuda):
        return
    launch = facts.launch
    wanted = not isinstance(launch, Unavailable) and launch.on_gpu
    if wanted or (isinstance(launch, Unavailable) and not isinstance(facts.gpus, Unavailable)):
        version = python.version_of("torch")
        yield Hit(
            "torch is built for the CPU only.",
            (f"torch {version}: torch/version.py has no CUDA",),
            f"{python.python} -m pip install --force-reinstall torch=={version.split('+')[0]}",
        )


@check(
    "driver-too-old",
    group="packages",
    severity="error",
    sound="the driver knows the CUDA of the packages",
    breaks="CUDA does not start: the driver is too old, or insufficient",
    source="https://github.com/ovg-project/kvcached/issues/74",
    prevents=("driver-too-old", "no-accelerator"),
)
def driver_too_old(facts: Facts) -> Iterator[Hit]:
    """A CUDA runtime of a higher major version than the driver's; minor ones go together."""
    gpus, python = known(facts.gpus), known(facts.python)
    driver = known(gpus.cuda)
    wanted = {"torch": known_or(python.torch_cuda, "")}
    for name, packages in python.packages.items():
        if name.startswith("nvidia-cuda-runtime"):
            wanted[name] = max((p.version for p in packages), key=release)
    told: set[int] = set()
    for name, text in wanted.items():
        needs = release(text)[:2]
        if needs and needs[0] > driver[0] and needs[0] not in told:
            told.add(needs[0])  # torch and its runtime are one matter
            compat = facts.host.compat_libcuda
            yield Hit(
                f"{name} needs CUDA {'.'.join(map(str, needs))}, and the driver knows"
                f" {driver[0]}.{driver[1]}.",
                (f"driver {gpus.driver}: CUDA {driver[0]}.{driver[1]}", f"{name} {text}",
                 *(f"a compatibility copy may help: {path}" for path in compat[:1])),
                "install a newer driver, or packages for CUDA " + str(driver[0]),
                "warning" if compat else None,
            )  # fmt: skip


@check(
    "cuda-compat",
    group="packages",
    severity="error",
    sound="no compatibility copy of libcuda is in the way",
    breaks="CUDA answers with error 804: forward compatibility on unsupported hardware",
    source="https://github.com/vllm-project/vllm/issues/4940",
    prevents=("cuda-804-forward-compat",),
)
def cuda_compat(facts: Facts) -> Iterator[Hit]:
    """The compat libcuda of an image is for data-centre GPUs only."""
    copies = facts.host.compat_libcuda
    if not copies:
        return
    for gpu in known(facts.gpus).devices[:1]:
        words = gpu.name.replace("-", " ").split()
        if not any(word in DATA_CENTRE for word in words):
            yield Hit(
                f"A compatibility copy of libcuda is found first, and {gpu.name} does not take it.",
                (copies[0], f"driver {known(facts.gpus).driver}"),
                f"mv {copies[0]} {copies[0]}.off && ldconfig",
            )


@check(
    "cublas-names",
    group="packages",
    severity="error",
    sound="there is one cuBLAS, under the name the engine looks for",
    breaks="FP8 batched GEMM of MLA is refused: the requested functionality is not supported",
    source="https://github.com/sgl-project/sglang/issues/11272",
    prevents=("cublaslt-bmm-fp8-unsupported",),
)
def cublas_names(facts: Facts) -> Iterator[Hit]:
    """nvidia-cublas (CUDA 13) and nvidia-cublas-cu12: both, or one that the gate misses."""
    python, engine = known(facts.python), facts.engine_version()
    old, new = python.version_of("nvidia-cublas-cu12"), python.version_of("nvidia-cublas")
    if old and new:
        yield Hit(
            "cuBLAS is installed twice, under two names.",
            (f"nvidia-cublas-cu12 {old}", f"nvidia-cublas {new}"),
            f"{python.python} -m pip uninstall nvidia-cublas-cu12"
            "  # or the other: torch's CUDA decides",
            "warning",
        )
    strict = release(old or new)[:2] >= STRICT_CUBLAS
    missed = engine < GATED_SINCE or (new and not old and engine < GATED_BY_BOTH_NAMES)
    model = facts.model
    unsure = isinstance(model, Unavailable) or isinstance(model.config, Unavailable)
    concerned = unsure or (
        known(model).number("kv_lora_rank") is not None
        and known(model).quantization().get("quant_method") == "fp8"
    )
    if engine and strict and missed and concerned:
        name = f"nvidia-cublas-cu12 {old}" if old else f"nvidia-cublas {new}"
        yield Hit(
            "This SGLang does not know how this cuBLAS wants the scales of FP8.",
            (f"sglang {'.'.join(map(str, engine))}", name),
            f"{python.python} -m pip install 'sglang>=0.5.8'",
            "warning" if unsure else None,
        )


@check(
    "toolkit-cublas",
    group="packages",
    severity="warning",
    sound="torch finds its own cuBLAS",
    breaks="the first GEMM fails: CUBLAS_STATUS_INVALID_VALUE",
    source="https://github.com/sgl-project/sglang-omni/issues/93",
    prevents=("cublas-invalid-value-lib-mismatch",),
)
def toolkit_cublas(facts: Facts) -> Iterator[Hit]:
    """A toolkit of another CUDA than torch's, whose libraries the loader finds first."""
    python, tools = known(facts.python), facts.tools
    mine, theirs = release(known(python.torch_cuda))[:2], release(tools.toolkit)[:2]
    env = facts.env if isinstance(facts.launch, Unavailable) else facts.launch.env
    first = [p for p in env.get("LD_LIBRARY_PATH", "").split(":") if "cuda" in p and "lib" in p]
    if mine and theirs and mine != theirs and first:
        yield Hit(
            "torch and the CUDA toolkit on LD_LIBRARY_PATH are of different versions.",
            (f"torch {python.version_of('torch')}: CUDA {known(python.torch_cuda)}",
             f"toolkit {tools.toolkit}", f"LD_LIBRARY_PATH has {first[0]}"),
            "unset LD_LIBRARY_PATH, or install the torch of the toolkit's CUDA",
        )  # fmt: skip


@check(
    "nccl-copies",
    group="packages",
    severity="error",
    sound="there is one NCCL, no older than torch's",
    breaks="two NCCL libraries in one process: a segmentation fault in ncclCommInitRank",
    source="https://github.com/sgl-project/sglang/issues/3778",
    prevents=("segv-in-nccl-init",),
)
def nccl_copies(facts: Facts) -> Iterator[Hit]:
    """Two wheels of NCCL, an older one than torch pins, or one put in front by a variable."""
    python = known(facts.python)
    wheels = {
        f"{p.name} {p.version}": p
        for name in ("nvidia-nccl-cu12", "nvidia-nccl-cu13", "nvidia-nccl-cu11")
        for p in python.packages.get(name, ())
    }
    torch = next(iter(python.packages.get("torch", ())), None)
    if len(wheels) > 1:
        yield Hit("NCCL is installed more than once.", tuple(wheels), _pip(python, torch))
    wrong = [
        w
        for w in (broken(torch, python.packages, python.version) if torch else ())
        if w.name.startswith("nvidia-nccl")
    ]
    # A newer one of the same major version is what SGLang's own images have.
    if (
        torch
        and wrong
        and release(wrong[0].installed) < release(wrong[0].requirement.rpartition("==")[2])
    ):
        told = (f"{wrong[0].requirement} is asked for", f"{wrong[0].installed} is installed")
        fix = f"{python.python} -m pip install '{wrong[0].requirement}'"
        yield Hit(f"NCCL is older than the one of torch {torch.version}.", told, fix)
    env = facts.env if isinstance(facts.launch, Unavailable) else facts.launch.env
    if not isinstance(facts.launch, Unavailable) and not facts.launch.on_gpu:
        return
    for name in ("LD_PRELOAD", "SGLANG_NCCL_SO_PATH", "VLLM_NCCL_SO_PATH"):
        if "nccl" in env.get(name, ""):
            say = f"{name} puts another NCCL in front of torch's."
            yield Hit(say, (f"{name}={env[name]}", *wheels), f"unset {name}", "warning")


def _pip(python: Environment, torch: Package | None) -> str:
    same = f"torch=={torch.version.split('+')[0]}" if torch else "torch"
    return f"{python.python} -m pip uninstall nvidia-nccl-cu12 nvidia-nccl-cu13; {python.python} -m pip install --force-reinstall {same}"  # noqa: E501


@check(
    "libraries",
    group="packages",
    severity="error",
    sound="compiled packages find the libraries that they need",
    breaks="the import of the engine's kernels fails: cannot open shared object file",
    source="https://github.com/sgl-project/sglang/issues/5094",
    prevents=("cuda-runtime-soname-missing", "sgl-kernel-system-lib-missing",
              "sgl-kernel-common-ops-load"),
)  # fmt: skip
def libraries(facts: Facts) -> Iterator[Hit]:
    """Needed libraries that neither the packages nor the system have."""
    python = known(facts.python)
    for library in known(python.libraries):
        if library.missing:
            lacks = ", ".join(library.missing)
            fix = f"{python.python} -m pip install --force-reinstall {library.package}"
            if "libnuma.so.1" in library.missing:
                fix = "apt install libnuma1"
            elif any(name.startswith(("libnvrtc.so", "libcudart.so")) for name in library.missing):
                fix += "  # the build for torch's CUDA: see the wheel's +cu suffix"
            yield Hit(f"{library.package} needs {lacks}, which is not here.", (library.path,), fix)


@check(
    "torch-abi",
    group="packages",
    severity="error",
    sound="compiled packages fit the installed torch",
    breaks="the import of the engine's kernels fails: undefined symbol",
    source="https://github.com/sgl-project/sglang/issues/5100",
    prevents=("sgl-kernel-torch-abi", "sgl-kernel-common-ops-load"),
)
def torch_abi(facts: Facts) -> Iterator[Hit]:
    """Symbols of torch that a kernel package asks for and the installed torch does not have."""
    python = known(facts.python)
    for library in known(python.libraries):
        if library.undefined:
            torch = python.version_of("torch")
            yield Hit(
                f"{library.package} was built for another torch than {torch}.",
                (library.path, *(f"undefined symbol: {name}" for name in library.undefined[:2])),
                f"{python.python} -m pip install --force-reinstall {library.package}"
                "  # in the version that sglang pins",
            )


@check(
    "glibc",
    group="packages",
    severity="error",
    sound="the C library is new enough for the compiled packages",
    breaks="the import fails: version GLIBC_... not found",
    source="https://github.com/Dao-AILab/flash-attention/issues/1762",
    prevents=("glibc-too-old",),
)
def glibc(facts: Facts) -> Iterator[Hit]:
    """The newest version of glibc that a package asks for, against this system's."""
    here = known(facts.host.glibc)
    for library in known(known(facts.python).libraries):
        if library.glibc > here:
            asks, has = (".".join(map(str, v)) for v in (library.glibc, here))
            yield Hit(
                f"{library.package} needs glibc {asks}, and this system has {has}.",
                (f"{library.path}: GLIBC_{asks}", f"glibc {has}"),
                "use a newer base image, or build the package here",
            )


@check(
    "ucx-copies",
    group="packages",
    severity="warning",
    sound="one UCX is loaded",
    breaks="NIXL cannot make its backend: NIXL_ERR_BACKEND",
    source="https://github.com/sgl-project/sglang/issues/5709",
    prevents=("pd-transfer-engine-init",),
)
def ucx_copies(facts: Facts) -> Iterator[Hit]:
    """NIXL brings its own UCX; one of the system beside it is loaded into the same process."""
    python, launch = known(facts.python), facts.launch
    nixl = next((name for name in python.packages if name.startswith("nixl")), "")
    other = [path for path in python.system_libraries if "libucp" in path]
    asked = isinstance(launch, Unavailable) or (
        launch.text("disaggregation-transfer-backend") == "nixl"
    )
    if nixl and other and asked:
        yield Hit(
            "There are two copies of UCX: NIXL's and the system's.",
            (f"{nixl} {python.version_of(nixl)}", other[0]),
            "remove the system's UCX, or build nixl against it",
        )


@check(
    "two-versions",
    group="packages",
    severity="warning",
    sound="no package is there in two versions",
    breaks="what is imported is not what pip reports",
    source="https://github.com/sgl-project/sglang/issues/7033",
    prevents=("sgl-kernel-torch-abi", "flashinfer-version-mismatch"),
)
def two_versions(facts: Facts) -> Iterator[Hit]:
    """One distribution twice on the path, in different versions."""
    python = known(facts.python)
    for name, packages in _decisive(python.packages).items():
        if len({package.version for package in packages}) > 1:
            told = tuple(f"{p.version} in {p.folder}" for p in packages)
            fix = f"{python.python} -m pip uninstall -y {name}  # until none is left; then install"
            yield Hit(f"{name} is installed in {len(packages)} versions.", told, fix)


def _decisive(
    packages: Mapping[str, tuple[Package, ...]],
) -> dict[str, tuple[Package, ...]]:
    names = {*DECISIVE, *FLASHINFER, *PINNING}
    return {name: found for name, found in packages.items() if name in names}


CHECKS = (
    flashinfer_versions, pins, torch_build, driver_too_old, cuda_compat, cublas_names,
    toolkit_cublas, nccl_copies, libraries, torch_abi, glibc, ucx_copies, two_versions,
)  # fmt: skip
