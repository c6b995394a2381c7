"""GPUs for machines that have none: the project's own libnvidia-ml under the real pynvml.

    def test_x(fake_gpus: FakeGpus) -> None:
        fake_gpus.set("3.used=165000", "all.fabric_state=1")
        fake_gpus.hold(3, 990, mib=5000)

The library is found in this process, and in children that are given `fake_gpus.env`.
"""

from __future__ import annotations

import _ctypes
import ctypes
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("fake_nvml.c")
LIBRARY = "libnvidia-ml.so.1"
CUDA_SOURCE = SOURCE.parents[1] / "cuda/fake_cuda.c"  # lies beside it, for those who ask CUDA too


class FakeGpus:
    """Eight idle B300, unless they are told to be something else."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library, self.state, self.held = library, folder / "gpus.txt", folder / "held"
        self.held.mkdir()
        self.state.write_text("")
        self._clock = time.time_ns()
        self.env = {
            "LD_LIBRARY_PATH": str(library.parent),
            "FAKE_NVML": str(self.state),
            "FAKE_NVML_HELD": str(self.held),
        }

    def set(self, *lines: str) -> None:
        """What the GPUs are from now on; `NAME=VALUE` as in fake_nvml.c."""
        self.state.write_text("\n".join(lines) + "\n")
        self._clock += 1_000_000  # a file written twice within a tick of the clock has changed
        os.utime(self.state, ns=(self._clock, self._clock))

    def hold(self, gpu: int, who: int | str, *, mib: int) -> None:
        """Memory that a process holds while it lives; or nobody, under any other name."""
        (self.held / f"{gpu}.{who}").write_text(str(mib))


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built library; skips where there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the stand-in for libnvidia-ml")
    target = tmp_path_factory.mktemp("nvml") / LIBRARY
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror",
         "-o", target.with_name("libcuda.so.1"), CUDA_SOURCE],
        check=True,
    )  # fmt: skip
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror",
         f"-Wl,-soname,{LIBRARY}", "-o", target, SOURCE],
        check=True,
    )  # fmt: skip
    return target


@pytest.fixture
def fake_gpus(
    nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeGpus]:
    """The stand-in for the length of a test; afterwards this process has no NVML again."""
    import pynvml

    (tmp_path / "fake-nvml").mkdir()
    fake = FakeGpus(nvml_library, tmp_path / "fake-nvml")
    for name in ("FAKE_NVML", "FAKE_NVML_HELD"):
        monkeypatch.setenv(name, fake.env[name])
    # pynvml asks the loader for the name, and a library of that name is loaded already.
    loaded = ctypes.CDLL(str(nvml_library))
    yield fake
    pynvml._nvmlGetFunctionPointer_cache.clear()
    found, pynvml.nvmlLib = pynvml.nvmlLib, None
    for library in (found, loaded):
        if library is not None:
            _ctypes.dlclose(library._handle)
