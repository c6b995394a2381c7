"""A small engine on disk, with the shapes of source that triage.installed reads."""

from __future__ import annotations

import json
from pathlib import Path

RUNNER = """\
class MoeRunner:
    def __init__(self, runner_backend, config, lora_enabled=False):
        self.fused_func = None
        if runner_backend.is_triton():
            self.runner_core = TritonRunnerCore(config)
        elif runner_backend.is_deep_gemm():
            self.runner_core = DeepGemmRunnerCore(config)
        elif runner_backend.is_marlin():
            if lora_enabled:
                self.runner_core = MarlinLoraRunnerCore(config)
            else:
                self.runner_core = None
        elif runner_backend.is_flashinfer_trtllm() or runner_backend.is_flashinfer_trtllm_routed():
            self.runner_core = None
        else:
            raise NotImplementedError("no")
"""
FILES = {
    "__init__.py": "",
    "layers/moe/utils.py": '''\
from enum import Enum
class MoeRunnerBackend(Enum):
    TRITON = "triton"
    DEEP_GEMM = "deep_gemm"
    MARLIN = "marlin"
    FLASHINFER_TRTLLM = "flashinfer_trtllm"
    FLASHINFER_TRTLLM_ROUTED = "flashinfer_trtllm_routed"
''',
    "layers/moe/moe_runner/runner.py": RUNNER,
    "layers/moe/moe_runner/triton.py": '''\
@register_fused_func("none", "triton")
def a(): pass
@register_pre_permute("standard", "triton")
def b(): pass
@register_post_permute("triton", "standard")
def c(): pass
''',
    "layers/moe/moe_runner/deep_gemm.py": '''\
register_pre_permute("deepep_ll", "deep_gemm")(x)
register_post_permute("deep_gemm", "deepep_ll")(y)
''',
    "layers/moe/moe_runner/marlin.py": '@register_fused_func("none", "marlin")\ndef a(): pass\n',
    "layers/moe/moe_runner/trtllm.py": '''\
@register_fused_func("none", "flashinfer_trtllm")
def a(): pass
''',
    "layers/moe/token_dispatcher/base.py": '''\
class DispatchOutputFormat(Enum):
    STANDARD = "standard"
    DEEPEP_LL = "deepep_ll"
''',
    "layers/moe/token_dispatcher/standard.py": '''\
def format(self):
    return DispatchOutputFormat.STANDARD
''',
    "layers/moe/token_dispatcher/deepep.py": '''\
def format(self):
    return DispatchOutputFormat.DEEPEP_LL
''',
    "layers/moe/token_dispatcher/nixl.py": '''\
from sglang.srt.layers.moe.token_dispatcher.deepep import DeepEPLLDispatchOutput
''',
    "layers/quantization/moe_wna16.py": '''\
class Method:
    def create(self, c):
        self.runner = MoeRunner(MoeRunnerBackend.TRITON, c)
class NPUMethod:
    def create(self, c, backend):
        self.runner = MoeRunner(backend, c)
''',
    "layers/quantization/fp8.py": '''\
class Method:
    def create(self, c, backend):
        self.runner = MoeRunner(backend, c)
''',
    "layers/quantization/compressed_tensors/schemes/compressed_tensors_wNa16_moe.py": '''\
class A:
    def create(self, c):
        self.runner = MoeRunner(MoeRunnerBackend.MARLIN, c)
class B:
    def create(self, c):
        self.runner = MoeRunner(MoeRunnerBackend.TRITON, c)
''',
    "speculative/spec_info.py": '''\
class SpeculativeAlgorithm(Enum):
    EAGLE = auto()
    NGRAM = auto()
    NONE = auto()
    @classmethod
    def register(cls, name): pass
''',
    "speculative/spec_registry.py": '_RESERVED_ALIASES = frozenset({"NEXTN"})\n',
    "entrypoints/engine.py": '''\
def start(cfg):
    assert_pkg_version("flashinfer_python", "0.7.2", "Please reinstall")
    assert_pkg_version("sglang-kernel", "0.4.9", "Please reinstall")
''',
}  # fmt: skip


def distribution(
    site: Path, name: str, version: str, entries: str = "", requires: str = ""
) -> None:
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    wishes = "".join(f"Requires-Dist: {one}\n" for one in requires.split())
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wishes}"
    )
    if entries:
        (folder / "entry_points.txt").write_text(entries)


def engine(folder: Path, files: dict[str, str] | None = None) -> Path:
    """Install the small engine; the path of its Python, which is not there to be run."""
    site = folder / "venv/lib/python3.11/site-packages"
    for name, text in (FILES | (files or {})).items():
        path = site / "sglang/srt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (site / "sglang/__init__.py").write_text("")
    distribution(site, "sglang", "0.5.23", requires="torch==2.14.1")
    (folder / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    python = folder / "venv/bin/python"
    python.parent.mkdir()
    python.write_text("#!/bin/false\n")
    python.chmod(0o755)
    return python


def site_of(python: Path) -> Path:
    return python.parent.parent / "lib/python3.11/site-packages"


def model(folder: Path, **values: object) -> Path:
    path = folder / "model"
    path.mkdir(exist_ok=True)
    plain = {"architectures": ["LlamaForCausalLM"], "num_attention_heads": 8,
             "num_key_value_heads": 4, "num_hidden_layers": 4}  # fmt: skip
    (path / "config.json").write_text(json.dumps(plain | values))
    return path
