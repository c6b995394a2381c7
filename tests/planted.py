"""A node that is sound in every way, and faults planted into it, one at a time.

In:  a description of a fault (fixtures/doctor/reports.yaml). Out: the examination of that node.
Not: judging: the real `triage.session.doctor` does it, over the real readers.

What can be real is real: a virtual environment with package folders, compiled libraries,
files on disk, busy ports, processes that hold memory, a hub on the loopback. The GPUs are
those of the stand-in for NVML; /proc, /sys and /dev are a folder.
"""

from __future__ import annotations

import ctypes
import http.server
import json
import os
import platform
import resource
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_gpus import FakeGpus

from triage.session.doctor import Examination, doctor

HEALTHY: dict[str, str] = {
    "proc/meminfo": "MemTotal: 2113929216 kB\nMemAvailable: 2000000000 kB\n"
    "CmaTotal: 65536 kB\nCmaFree: 60000 kB\n",
    "proc/self/status": "Name:\tx\nMems_allowed_list:\t0-1\n",
    "proc/self/cgroup": "0::/\n",
    "proc/self/mountinfo": "27 1 254:0 / / rw - ext4 /dev/vda rw\n",
    "proc/uptime": "90000.00 80000.00\n",
    "proc/modules": "nvidia 1 0 - Live 0x0\nnvidia_peermem 1 0 - Live 0x0\n",
    "proc/77/comm": "nv-fabricmanage\n",
    "usr/bin/nv-fabricmanager": "#!/bin/sh\necho 'Fabric Manager version is : 580.95.05'\n",
    "etc/hosts": "127.0.0.1 localhost\n10.0.0.7 node-7\n",
    "dev/kmsg": "6,1,1000,-;NVRM: loading NVIDIA UNIX Open Kernel Module 580.95.05\n",
    "dev/nvidia0": "",
    "dev/nvidia-nvswitch0": "",
    "dev/nvidia-caps/nvidia-cap1": "",
    "dev/infiniband/uverbs0": "",
}
PACKAGES = {
    "sglang": "0.5.23", "torch": "2.14.1", "torchvision": "0.29.1", "triton": "3.8.0",
    "transformers": "5.19.0", "sglang-kernel": "0.4.10", "flashinfer-python": "0.7.2",
    "flashinfer-cubin": "0.7.2", "flashinfer-jit-cache": "0.7.2+cu130", "ninja": "1.13.0",
    "nvidia-nccl-cu13": "2.30.7", "nvidia-cublas": "13.1.1.3", "nvidia-nvshmem-cu13": "3.6.0",
    "nvidia-cuda-runtime": "13.0.96",
}  # fmt: skip
REQUIRES = {
    "sglang": ["torch==2.14.1", "sglang-kernel==0.4.10", "flashinfer_python[cu13]==0.7.2",
               "transformers==5.19.0"],
    "torch": ['nvidia-nccl-cu13==2.30.7; platform_system == "Linux"', "triton~=3.8.0"],
    "torchvision": ["torch (>=2.14.0)"],
}  # fmt: skip
SOURCES = {
    "sglang/srt/models/deepseek_v2.py": "class DeepseekV3ForCausalLM(object):\n    pass\n",
    "transformers/models/auto/auto_mappings.py": 'X = {"deepseek_v3": "DeepseekV3Config",'
    ' "llama": "LlamaConfig"}\n',
}
MODEL: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168,
    "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "n_routed_experts": 256, "kv_lora_rank": 512,
    "qk_nope_head_dim": 128, "vocab_size": 129280, "max_position_embeddings": 163840,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip
DRAFT: dict[str, Any] = {
    "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 7168,
    "vocab_size": 129280, "draft_vocab_size": 32000, "max_position_embeddings": 163840,
    "block_size": 8,
}  # fmt: skip
COMMAND = "python -m sglang.launch_server --model-path {model} --tp-size 8"
GB = 1 << 30
_OTHER_MACHINE, _NO_FILTER = 77, 78


class Node:
    """A sound node under construction, in a folder of its own."""

    def __init__(self, folder: Path, gpus: FakeGpus, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.gpus, self.patch = folder, gpus, patch
        self.root, self.home = folder / "root", folder / "home"
        self.site = folder / "venv/lib/python{}.{}/site-packages".format(*sys.version_info[:2])
        self.cuda = folder / "cuda"
        self.stack = ExitStack()

    def build(self, fault: Mapping[str, Any]) -> None:
        """The sound node, with the fault in the place of what it replaces."""
        for name, text in {**HEALTHY, **fault.get("root", {})}.items():
            if text is not None:
                _write(self.root / name, text, mode=0o755 if "/bin/" in name else None)
        (self.root / "dev/shm").mkdir(parents=True, exist_ok=True)
        for name in ("proc", "home"):
            (self.folder / name).mkdir(exist_ok=True)
        self._python(fault)
        self._tools(fault.get("tools", {}))
        _checkpoint(self.folder / "model", MODEL, fault.get("model", {}))
        _checkpoint(self.folder / "draft", DRAFT, fault.get("draft", {}))
        self._environment(fault)
        self.gpus.set(*fault.get("gpus", []))
        for gpu, mib in fault.get("held", {}).items():
            tenant = self.stack.enter_context(_tenant())
            self.gpus.hold(int(gpu), tenant, mib=mib)
        for gpu, mib in fault.get("leaked", {}).items():
            self.gpus.hold(int(gpu), "nobody", mib=mib)
        for number in fault.get("busy", []):
            self.stack.enter_context(_listening(number))
        for name, age in fault.get("old", {}).items():
            path = self.folder / name
            _write(path, "x" * 5000)
            then = time.time() - age
            os.utime(path, (then, then))
        if "hub" in fault:
            address = self.stack.enter_context(_hub(fault["hub"]))
            self.patch.setenv("HF_ENDPOINT", address)
        if "network" in fault:
            mounts = Path("/proc/self/mountinfo").read_text()
            for name, kind in fault["network"].items():
                mounts += f"99 27 0:99 / {self.folder / name} rw - {kind} server:/x rw\n"
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            _write(self.folder / "mountinfo", mounts)
            self.patch.setattr("triage.machine.disks.MOUNTS", self.folder / "mountinfo")
        if "tmpfs" in fault:
            for name, size in fault["tmpfs"].items():
                self.stack.enter_context(_tmpfs(self.folder / name, size))

    def _environment(self, fault: Mapping[str, Any]) -> None:
        for name in list(os.environ):
            if name.startswith(
                ("HF_", "FAKE_CUDA", "NCCL_", "SGLANG_", "TRITON_", "CUDA", "LD_", "XDG_")
            ) or ("proxy" in name.lower()):
                self.patch.delenv(name)
        usual = {
            "LD_LIBRARY_PATH": str(self.gpus.library.parent),
            "HOME": str(self.home),
            "PATH": f"{self.folder}/venv/bin:{self.folder}/bin:/usr/bin:/bin",
            "CUDA_HOME": str(self.cuda),
            "TMPDIR": str(self.folder),
        }
        for name, text in {**usual, **fault.get("env", {})}.items():
            self.patch.setenv(name, self.fill(str(text)))
        self.patch.setattr(socket, "gethostname", lambda: "node-7")

    def _python(self, fault: Mapping[str, Any]) -> None:
        """A virtual environment without pip, its packages as folders of metadata."""
        binary = self.folder / "venv/bin/python"
        binary.parent.mkdir(parents=True)
        real = Path(sys._base_executable)  # type: ignore[attr-defined]  # not in the stubs
        _write(self.folder / "venv/pyvenv.cfg", f"home = {real.parent}\n")
        if fault.get("real_python"):
            binary.symlink_to(real)
        else:  # ten times as fast, and says what the real one would
            include = fault.get("include", sysconfig.get_paths()["include"])
            told = json.dumps([list(sys.version_info[:3]), [str(self.site)], include])
            _write(binary, f"#!/bin/sh\necho '{told}'\n", mode=0o755)
        packages = {**PACKAGES, **fault.get("packages", {})}
        requires = {**REQUIRES, **fault.get("requires", {})}
        for name, version in packages.items():
            for one in [version] if isinstance(version, str) else version or ():
                folder = self.site / f"{name.replace('-', '_')}-{one}.dist-info"
                folder.mkdir(parents=True)
                if name in requires:
                    lines = "".join(f"Requires-Dist: {r}\n" for r in requires[name])
                    _write(folder / "METADATA", f"Name: {name}\nVersion: {one}\n{lines}\n")
        cuda = fault.get("torch_cuda", "13.0")
        _write(self.site / "torch/version.py", f"cuda: Optional[str] = {cuda!r}\n")
        for name, text in {**SOURCES, **fault.get("sources", {})}.items():
            _write(self.site / name, text)
        for name, how in {"sgl_kernel/common_ops.so": {}, **fault.get("libraries", {})}.items():
            _compile(self.site / name, how)
        _compile(self.site / "torch/lib/libc10.so", {"defines": ["_ZN3c105ErrorC1Ev"]})

    def _tools(self, given: Mapping[str, Any]) -> None:
        """Programs that tell a version, as nvcc and ptxas do."""
        has = {"nvcc": "13.0", "ptxas": "12.9", "ptxas-blackwell": "13.0", "cuobjdump": "13.0",
               "headers": True, **given}  # fmt: skip
        inside = self.site / "triton/backends/nvidia/bin"
        for name in ("nvcc", "cuobjdump", "ptxas", "ptxas-blackwell"):
            if has[name]:
                place = inside if name.startswith("ptxas") else self.cuda / "bin"
                say = f"Cuda compilation tools, release {has[name]}, V{has[name]}.1"
                _write(place / name, f"#!/bin/sh\necho '{say}'\n", mode=0o755)
        if has["headers"]:
            _write(self.cuda / "include/cuda_fp8.h", "")
        self.patch.setattr("triage.machine.tools._USUAL", str(self.folder / "no-toolkit"))

    def fill(self, text: str) -> str:
        """A text with the places of this node."""
        for name in ("model", "draft", "home", "cuda", "root", "folder"):
            place = self.folder if name == "folder" else self.folder / name
            text = text.replace(f"{{{name}}}", str(place))
        return text.replace("{nvml}", str(self.gpus.library.parent))

    def examine(self, command: str | None = COMMAND, *, deep: bool = False) -> Examination:
        """What the doctor says; without a command, of the machine alone."""
        target = None
        python = str(self.folder / "venv/bin/python")
        if command is not None:
            target = self.folder / "serve.sh"
            target.write_text(self.fill(command) + "\n")
            python = ""
        return doctor(target, python=python, deep=deep, root=self.root)


@contextmanager
def node(
    tmp_path: Path, gpus: FakeGpus, patch: pytest.MonkeyPatch, fault: Mapping[str, Any]
) -> Iterator[Node]:
    """A node with a fault, until the context ends."""
    made = Node(tmp_path / "node", gpus, patch)
    made.folder.mkdir()
    with made.stack:
        made.build(fault)
        yield made


def _write(path: Path, text: str, *, mode: int | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if mode is not None:
        path.chmod(mode)


_BUILT: dict[str, bytes] = {}


def _compile(path: Path, how: Mapping[str, Any]) -> None:
    """A shared library that needs, lacks or defines what it is told to; built once each."""
    key = json.dumps([sorted(how.items()), path.name])
    if key not in _BUILT:
        compiler = shutil.which("gcc") or pytest.skip("no C compiler to build libraries with")
        folder = path.parents[1] / f"build-{path.stem}"
        folder.mkdir(parents=True)
        code = "".join(f"int {name}(void) {{ return 0; }}\n" for name in how.get("defines", ()))
        undefined = list(how.get("undefined", ()))
        code += "".join(f"extern int {n}(void);\n" for n in undefined)
        code += f"int probe(void) {{ return 0{''.join(f' + {n}()' for n in undefined)}; }}\n"
        words = [compiler, "-shared", "-fPIC", "-o", "made.so", "made.c"]
        (folder / "made.c").write_text(code)
        for number, name in enumerate(how.get("needs", ())):
            stub = f"int stub{number}(void) {{ return 0; }}\n"
            (folder / f"stub{number}.c").write_text(stub)
            subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o",
                            f"libstub{number}.so", f"stub{number}.c"], cwd=folder, check=True)  # fmt: skip
            words += ["-Wl,--no-as-needed", f"./libstub{number}.so"]
        if version := how.get("glibc"):
            (folder / "libc.c").write_text("int newer(void) { return 0; }\n")
            (folder / "libc.map").write_text(f"GLIBC_{version} {{ newer; }};\n")
            subprocess.run([compiler, "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libc.so.6",
                            "-Wl,--version-script=libc.map", "-o", "libnew.so", "libc.c"],
                           cwd=folder, check=True)  # fmt: skip
            (folder / "made.c").write_text(
                "extern int newer(void);\nint probe(void) { return newer(); }\n"
            )
            words += ["-nostdlib", "-Wl,--no-as-needed", "./libnew.so"]
        subprocess.run(words, cwd=folder, check=True)
        _BUILT[key] = (folder / "made.so").read_bytes()
        shutil.rmtree(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_BUILT[key])


def _checkpoint(folder: Path, usual: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """config.json and weights; a size in GB is a file with a hole of that size."""
    folder.mkdir(parents=True, exist_ok=True)
    given = dict(given)
    files, gb = given.pop("files", {}), given.pop("gb", None)
    only = given.pop("only", False)
    config = given if only else {**usual, **given}
    cut = config.pop("cut", 0)
    (folder / "config.json").write_text(
        json.dumps({k: v for k, v in config.items() if v is not None})
    )
    if gb is not None or "model.safetensors" not in files:
        size = int((gb or 0) * GB) + cut * 2
        header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}})
        with (folder / "model.safetensors").open("wb") as file:
            file.write(struct.pack("<Q", len(header)) + header.encode())
            file.truncate(8 + len(header) + size - cut)
    for name, text in files.items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else bytes(text))


def in_process(node: Node, how: Mapping[str, Any], command: str) -> dict[str, Any]:
    """The document of a doctor of its own, under limits that a process cannot take back."""
    target = node.folder / "serve.sh"
    target.write_text(node.fill(command) + "\n")

    def before() -> None:
        if "memlock_kib" in how:
            _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
            size = how["memlock_kib"] * 1024
            size = size if hard == resource.RLIM_INFINITY else min(hard, size)
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (size, size))
        if "deny" in how:
            _deny(how["deny"])

    done = subprocess.run(
        [sys.executable, "-m", "triage", "doctor", str(target), "--json"],
        env={**os.environ, **node.gpus.env, "PATH": f"{node.folder}/venv/bin:/usr/bin:/bin"},
        capture_output=True, check=False, timeout=60, preexec_fn=before,
    )  # fmt: skip
    if done.returncode in (_OTHER_MACHINE, _NO_FILTER):
        pytest.skip("calls can not be forbidden here")
    assert done.stderr == b"", done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def _deny(calls: list[str]) -> None:
    """Let the kernel answer EPERM to these calls, as a container's runtime does."""
    numbers = {"set_mempolicy": 238, "clone3": 435}
    if platform.machine() != "x86_64":
        os._exit(_OTHER_MACHINE)
    # Load the call's number; on a match jump to the last line; allow; refuse with EPERM.
    lines = [(0x20, 0, 0, 0)]
    wanted = [numbers[name] for name in calls]
    lines += [(0x15, len(wanted) - at, 0, number) for at, number in enumerate(wanted)]
    lines += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | 1)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in lines))
    header = ctypes.create_string_buffer(
        struct.pack("<HxxxxxxQ", len(lines), ctypes.addressof(program))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges
    if libc.prctl(22, 2, header, 0, 0):  # seccomp, filter
        os._exit(_NO_FILTER)


@contextmanager
def _tenant() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "60"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextmanager
def _listening(port: int) -> Iterator[None]:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", port))
        except OSError:
            yield  # somebody else listens there already, which is the same fault
            return
        server.listen()
        yield


@contextmanager
def _hub(code: int) -> Iterator[str]:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(code)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            """Silent."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _tmpfs(folder: Path, options: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", options, "triage", str(folder)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
