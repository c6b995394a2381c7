"""Server commands in every form, and configurations to write into them."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import strategies as st

from triage.core.config import Value
from triage.core.flags import table_of

FLAGS = Path(__file__).parents[1] / "triage/knowledge/flags/sglang-0.5.23.yaml"
TABLE = table_of(yaml.load(FLAGS.read_text(), yaml.CSafeLoader))
SERVER = "python -m sglang.launch_server"

SCRIPT = """#!/bin/bash
MODEL=/models/x   # the model
export NCCL_DEBUG=INFO
export FOO="a b" BAR=1
EXTRA="--ep-size 8 --enable-nccl-nvls"
A=1 exec python -m sglang.launch_server \\
    --model-path "$MODEL" \\
    --tp 8 \\
    --fork-flag 7 --odd-switch \\
    --lora-paths a "b c" \\
    $EXTRA 2>&1 | tee log
"""
ARRAY = """ARGS=(
  --model-path m   # which
  --tp 8
  --ep-size=8
)
if true; then B=2 nohup python -m sglang.launch_server "${ARGS[@]}" --no-dllm-fdfo > log & fi
"""
DOCKER = """docker run --gpus all -it --rm \\
  -e A=1 --env=FOO='a b' \\
  -v /models:/models \\
  lmsysorg/sglang:latest \\
  python3 -m sglang.launch_server \\
  --model-path m \\
  --tp 8
"""
INNER = """docker run -eA=1 img bash -c "export FOO=x && B=3 python -m sglang.launch_server --model m --tp 8 | cat" """
UNIT = """[Unit]
Description=server
[Service]
Environment="FOO=a b" A=1
Environment=NCCL_DEBUG=INFO
ExecStart=/usr/bin/python3 -m sglang.launch_server \\
    --model-path m \\
    # eight of them
    --tp 8 \\
    --served-model-name "a b"
Restart=always
"""
CONTAINER_UNIT = """[Service]
Environment=NOT_INSIDE=1
ExecStart=/usr/bin/docker run -e A=1 -e "FOO=a b" img sglang serve m --tp 8
"""
YAML = """# ours
model-path: m
tp-size: 8   # eight
cuda-graph-bs-decode:
  - 1
  - 2

# the last part
enable-metrics: true
"""
BATCH = """#!/bin/bash
#SBATCH --job-name=serve
#SBATCH --nodes=1 --gres=gpu:8
module load cuda   # the driver's
export NCCL_DEBUG=INFO FOO='a b'
srun --ntasks=1 --container-image=img.sqsh \\
    python3 -m sglang.launch_server \\
    --model-path m \\
    --tp 8
"""
BATCH_INNER = """#!/bin/bash
#SBATCH --gpus 8
A=1 srun --mpi=pmix bash -c "python3 -m sglang.launch_server --model m --tp 8"
"""
POD = """# ours
apiVersion: v1
kind: Pod
metadata: {name: serve}
spec:
  containers:
    - name: side
      image: proxy
      args: [--upstream, "127.0.0.1:30000"]
    - image: img   # the server
      name: server
      env:
        - name: A
          value: "1"   # one
        - name: FOO
          value: a b
        - name: HF_TOKEN
          valueFrom: {secretKeyRef: {name: hf, key: token}}
      command: ["python3", "-m", "sglang.launch_server"]
      args:
        - --model-path
        - m   # the model
        # eight of them
        - "--tp=8"
        - --served-model-name
        - "$(FOO) $$(x)"
      ports: [{containerPort: 30000}]
---
apiVersion: v1
kind: Service
metadata: {name: serve}
"""
POD_FLOW = """{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "s", "image": "img",
 "command": ["sglang", "serve", "m"], "args": ["--tp", "8", "--enable-metrics"]}]}}
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
      - name: server
        workingDir: /srv
        command: [bash, -c]
        args:
        - |
          # before
          export FOO=x
          A=1 exec python3 -m sglang.launch_server \\
            --model-path m \\
            --tp 8
        resources: {limits: {nvidia.com/gpu: 8}}
"""
LINE = f"A=1 FOO='x y' {SERVER} --model m --tp=4 --tp 8 --enable-metrics"
FORMS = {
    "script": SCRIPT,
    "array": ARRAY,
    "docker": DOCKER,
    "inner": INNER,
    "unit": UNIT,
    "container-unit": CONTAINER_UNIT,
    "batch": BATCH,
    "batch-inner": BATCH_INNER,
    "pod": POD,
    "pod-flow": POD_FLOW,
    "deployment": DEPLOYMENT,
    "yaml": YAML,
    "flow-yaml": "{model-path: m, tp: 8}",
    "line": LINE,
    "serve": "sglang serve m --tp 8",
    "bare": "sglang serve",
    "log": "server_args={'model_path': 'm', 'tp_size': 8}",
}

HOSTILE = [
    "a b",
    "$(x)",
    "`x`",
    "it's",
    '"',
    "\\",
    "a\nb",
    '{"a": [1, "b c"]}',
    "",
    "*",
    "~",
    "#x",
    "é",
    "-1",
    "--x",
    "%i",
    "$A",
    "${A}",
    "true",
    "010",
    "1e3",
    "null",
    "a: b",
    "\x07",
    "\u2028",
    "\x85",
    "\U0001f600",
    "\\n",
    "x\\",
    "|",
    "; ls",
]
TEXT = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6),
)
ITEM = TEXT.filter(lambda text: not text.startswith("-"))
NAMES = sorted(set(TABLE.specs) - {"config"})
USED = [
    "model-path",
    "tp-size",
    "ep-size",
    "enable-nccl-nvls",
    "lora-paths",
    "enable-metrics",
    "served-model-name",
    "cuda-graph-bs-decode",
]


@st.composite
def flag_values(draw: st.DrawFn) -> dict[str, Value]:
    flags: dict[str, Value] = {}
    for name in draw(st.lists(st.sampled_from([*NAMES, *USED * 20]), unique=True, max_size=7)):
        match TABLE.specs[name].style:
            case "switch":
                flags[name] = True
            case "bool-optional":
                flags[name] = draw(st.booleans())
            case "list":
                flags[name] = tuple(draw(st.lists(ITEM, min_size=1, max_size=3)))
            case "optional-value":
                flags[name] = draw(st.one_of(st.just(True), TEXT))
            case "value":
                flags[name] = draw(TEXT)
    if draw(st.booleans()):
        flags["fork-flag"] = draw(st.one_of(st.just(True), TEXT, st.tuples(ITEM, ITEM)))
    return flags


ENV = st.dictionaries(st.sampled_from(["A", "B", "FOO", "NCCL_DEBUG", "NEW"]), TEXT, max_size=4)


def in_a_config_file(flags: dict[str, Value]) -> dict[str, Value]:
    """Those that SGLang takes from a file."""
    return {
        name: value
        for name, value in flags.items()
        if name == "fork-flag"
        or (
            (not isinstance(value, str) or TABLE.is_value(value))
            and (
                TABLE.specs[name].config_file
                and (value is not True or TABLE.specs[name].style == "switch")
            )
        )
    }
