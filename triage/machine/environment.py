"""The engine's Python: which packages it has, in which versions, and whether they load.

In:  a Python executable. Out: Environment.
Not: importing any of its packages: their files are read. The Python itself is asked for its
search path only, in a process of a few milliseconds.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from triage.core.machine.facts import Fact, Unavailable
from triage.core.machine.packages import Environment, Library, Package
from triage.machine.elf import Needs, NotElfError, defines, needs
from triage.machine.patience import Reading

_ASK = (
    "import json,sys,sysconfig;"
    "print(json.dumps([list(sys.version_info[:3]),sys.path,sysconfig.get_paths()['include']]))"
)
_READ = frozenset({"sglang", "torch", "torchvision", "torchaudio", "sgl-kernel", "sglang-kernel",
                   "vllm"})  # fmt: skip
# Package -> its folders with compiled code against torch.
_COMPILED = {
    "sgl-kernel": ("sgl_kernel",), "sglang-kernel": ("sgl_kernel",), "flash-attn": ("",),
    "vllm": ("vllm",), "flashinfer-python": ("flashinfer",), "deep-ep": ("",),
    "sgl-deep-gemm": ("deep_gemm",),
}  # fmt: skip
_LOOSE = re.compile(r"^(flash_attn_2_cuda|deep_ep_cpp).*\.so$")
_TORCH_LIBRARIES = ("libc10.so", "libc10_cuda.so", "libtorch.so", "libtorch_cpu.so",
                    "libtorch_cuda.so", "libtorch_python.so")  # fmt: skip
# Mangled beginnings of torch's own names: namespaces c10, at, torch.
_TORCH_SYMBOLS = ("_ZN3c10", "_ZNK3c10", "_ZN2at", "_ZNK2at", "_ZN5torch", "_ZNK5torch",
                  "_ZTIN3c10", "_ZTVN3c10")  # fmt: skip
_SYSTEM = ("lib", "lib64", "usr/lib", "usr/lib64", "usr/local/lib", "usr/local/cuda/lib64",
           "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu",
           "usr/lib/aarch64-linux-gnu")  # fmt: skip
# Of the driver, about which the GPU checks tell; and of the C library, which every Python has.
_GIVEN = frozenset({
    "libcuda.so.1", "libnvidia-ml.so.1", "libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1",
    "libpthread.so.0", "libutil.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
})  # fmt: skip
_TYPE = re.compile(r"""model_type\s*(?::\s*\w+)?\s*=\s*["']([\w.-]+)["']""")
_MAPPED = re.compile(r"""["']([\w.-]+)["']\s*[,:]\s*["']\w+Config["']""")
_QUOTED = re.compile(r"""["']([\w.-]{2,40})["']""")
_CLASS = re.compile(r"^class (\w+)\(", re.M)
_MOST_LIBRARIES = 40
_LIBRARIES_S = 4.0


def environment(python: str, env: Mapping[str, str], root: Path = Path("/")) -> Fact[Environment]:
    """What a Python has installed; unavailable if it does not run."""
    asked = search_path(python, env)
    if isinstance(asked, Unavailable):
        return asked
    version, folders, include = asked
    found = packages(folders)
    return Environment(
        python=python,
        version=version,
        packages=found,
        torch_cuda=torch_cuda(folders),
        libraries=Reading(
            "a disk", lambda: _libraries(found, folders, env, root), _LIBRARIES_S
        ).fact(),
        architectures=_architectures(folders),
        model_types=_model_types(folders),
        headers=(include / "Python.h").is_file(),
        system_libraries=tuple(
            str(path)
            for folder in _SYSTEM
            for path in sorted((root / folder).glob("libucp.so*"))[:1]
        ),
    )


def search_path(
    python: str, env: Mapping[str, str]
) -> tuple[tuple[int, ...], tuple[Path, ...], Path] | Unavailable:
    """Version, folders of packages and folder of headers, as this Python tells them."""
    try:
        done = subprocess.run(
            [python, "-c", _ASK], capture_output=True, check=True, timeout=10, cwd="/",
            env={**env, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        version, path, include = json.loads(done.stdout)
    except OSError as error:
        return Unavailable(f"{python}: {error.strerror}")
    except (subprocess.SubprocessError, ValueError):
        return Unavailable(f"{python} does not run")
    folders = tuple(Path(p) for p in path if p and Path(p).is_dir())
    return tuple(version), folders, Path(include)


def packages(folders: Sequence[Path]) -> dict[str, tuple[Package, ...]]:
    """Name -> its installations, first on the path first."""
    found: dict[str, list[Package]] = {}
    for folder in folders:
        try:
            names = sorted(entry.name for entry in os.scandir(folder))
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info"):
                title, _, version = name.removesuffix(".dist-info").partition("-")
                plain = re.sub(r"[-_.]+", "-", title).lower()
                requires = _requires(folder / name) if plain in _READ else ()
                package = Package(
                    name=plain, version=version, folder=str(folder), requires=requires
                )
                found.setdefault(plain, []).append(package)
    return {name: tuple(packages) for name, packages in found.items()}


def _requires(folder: Path) -> tuple[str, ...]:
    try:
        text = (folder / "METADATA").read_text(errors="replace")
    except OSError:
        return ()
    head = text.partition("\n\n")[0]
    lines = (line for line in head.splitlines() if line.startswith("Requires-Dist:"))
    return tuple(line.partition(":")[2].strip() for line in lines)


def torch_cuda(folders: Sequence[Path]) -> Fact[str]:
    """The CUDA that torch was built for, from its version file; "" for a build without."""
    for folder in folders:
        try:
            text = (folder / "torch/version.py").read_text()
        except OSError:
            continue
        match = re.search(r"^cuda(?::[^=]*)?\s*=\s*(?:None|['\"]([\d.]+)['\"])", text, re.M)
        return (match[1] or "") if match else Unavailable("torch/version.py names no CUDA")
    return Unavailable("torch is not installed")


def _libraries(
    packages: Mapping[str, tuple[Package, ...]],
    folders: Sequence[Path],
    env: Mapping[str, str],
    root: Path,
) -> Fact[tuple[Library, ...]]:
    """Compiled modules of the kernel packages, with what is not there for them."""
    modules = list(_modules(packages, folders))[:_MOST_LIBRARIES]
    if not modules:
        return Unavailable("no kernel package is installed")
    search = _search(folders, env, root)
    torch = [
        path
        for folder in folders
        for name in _TORCH_LIBRARIES
        if (path := folder / "torch/lib" / name).is_file()
    ]
    asked = []
    for package, path in modules:
        try:
            asked.append((package, path, needs(path, _TORCH_SYMBOLS if torch else ())))
        except (OSError, NotElfError):
            continue
    nowhere = _nowhere({name for _, _, wants in asked for name in wants.undefined}, torch)
    return tuple(
        Library(
            path=str(path),
            package=package,
            missing=_missing(wants, [path.parent, *_origin(wants.paths, path), *search]),
            undefined=tuple(name for name in wants.undefined if name in nowhere),
            glibc=wants.glibc,
        )
        for package, path, wants in asked
    )


def _missing(wants: Needs, places: Sequence[Path]) -> tuple[str, ...]:
    """Needed libraries that none of the places has."""
    return tuple(
        name
        for name in wants.libraries
        if name not in _GIVEN and not any((place / name).exists() for place in places)
    )


def _modules(
    packages: Mapping[str, tuple[Package, ...]], folders: Sequence[Path]
) -> Iterable[tuple[str, Path]]:
    for name, inside in _COMPILED.items():
        for package in packages.get(name, ()):
            for module in filter(None, inside):
                paths = sorted((Path(package.folder) / module).rglob("*.so"))
                yield from ((name, path) for path in paths)
    for folder in folders:
        for entry in sorted(folder.glob("*.so")):
            if _LOOSE.match(entry.name):
                yield entry.name.split(".")[0], entry


def _origin(paths: Sequence[str], library: Path) -> list[Path]:
    parent = str(library.parent)
    return [Path(p.replace("$ORIGIN", parent).replace("${ORIGIN}", parent)) for p in paths if p]


def _search(folders: Sequence[Path], env: Mapping[str, str], root: Path) -> list[Path]:
    """Where the loader finds libraries: variables, the wheels of NVIDIA, torch, the system."""
    places = [Path(p) for p in env.get("LD_LIBRARY_PATH", "").split(":") if p]
    for folder in folders:
        places += [folder / "torch/lib", *sorted((folder / "nvidia").glob("*/lib"))]
        places += sorted((folder / "nvidia").glob("cu*/lib"))
    try:
        for file in sorted((root / "etc/ld.so.conf.d").glob("*.conf")):
            lines = (line.strip() for line in file.read_text().splitlines())
            places += [root / line.lstrip("/") for line in lines if line.startswith("/")]
    except OSError:
        pass
    return [*places, *(root / folder for folder in _SYSTEM)]


def _nowhere(symbols: set[str], torch: Sequence[Path]) -> set[str]:
    """Those symbols of torch that none of its libraries defines."""
    left = set(symbols)
    for path in torch:
        if left:
            try:
                left -= defines(path, left)
            except (OSError, NotElfError):
                return set()  # a torch that cannot be read proves nothing
    return left


def _architectures(folders: Sequence[Path]) -> Fact[frozenset[str]]:
    """Classes in the engine's folder of models."""
    for folder in folders:
        models = folder / "sglang/srt/models"
        if models.is_dir():
            names: set[str] = set()
            for path in models.rglob("*.py"):
                try:
                    names |= set(_CLASS.findall(path.read_text(errors="replace")))
                except OSError:
                    continue
            return frozenset(names)
    return Unavailable("the sources of sglang are not found")


def _model_types(folders: Sequence[Path]) -> Fact[frozenset[str]]:
    """Types that transformers and the engine register, as their sources spell them.

    Where the engine registers types under computed names, every word that it quotes counts:
    a type is called unknown only if nobody mentions it.
    """
    names: set[str] = set()
    for folder in folders:
        for name in ("configuration_auto.py", "auto_mappings.py"):
            try:
                text = (folder / "transformers/models/auto" / name).read_text(errors="replace")
            except OSError:
                continue
            names |= set(_MAPPED.findall(text))
        for inside, pattern in (("configs", _TYPE), ("utils/hf_transformers", _QUOTED)):
            for path in (folder / "sglang/srt" / inside).glob("*.py"):
                try:
                    names |= set(pattern.findall(path.read_text(errors="replace")))
                except OSError:
                    continue
    return frozenset(names) if names else Unavailable("transformers is not installed")
