"""A command is written back in its form: read again it is the new config, and the rest is untouched."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triage.command import read_argv, read_command, write_command
from triage.core.config import (
    Change,
    Config,
    ServerCommand,
    SetEnv,
    SetFlag,
    UnsetEnv,
    UnsetFlag,
    Value,
    apply,
    argv,
)
from triage.core.flags import table_of
from triage.errors import UsageError

FLAGS = Path(__file__).parents[2] / "triage/knowledge/flags/sglang-0.5.23.yaml"
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
LINE = f"A=1 FOO='x y' {SERVER} --model m --tp=4 --tp 8 --enable-metrics"
FORMS = {
    "script": SCRIPT,
    "array": ARRAY,
    "docker": DOCKER,
    "inner": INNER,
    "unit": UNIT,
    "container-unit": CONTAINER_UNIT,
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


@pytest.mark.parametrize("form", FORMS)
@given(flags=flag_values(), env=ENV)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_what_is_written_is_read_as_the_new_config(
    form: str, flags: dict[str, Value], env: dict[str, str]
) -> None:
    command = read_command(FORMS[form], TABLE)
    if "yaml" in form:
        flags, env = in_a_config_file(flags) | {"model-path": "m"}, {}
    new = Config.of(flags, env)
    if form == "bare" and not flags:
        return
    written = write_command(command, new, TABLE)
    assert read_command(written, TABLE).config == new


@pytest.mark.parametrize("form", [f for f in FORMS if f not in ("log", "flow-yaml")])
def test_the_same_config_gives_the_same_text(form: str) -> None:
    command = read_command(FORMS[form], TABLE)
    assert write_command(command, command.config) == FORMS[form]


def edited(text: str, *changes: Change) -> str:
    command = read_command(text, TABLE)
    return write_command(command, apply(command.config, changes))


def test_a_script_keeps_all_but_the_changed_words() -> None:
    changes = (
        UnsetFlag("ep-size"),
        SetFlag("tp-size", "4"),
        SetFlag("page-size", "16"),
        SetEnv("NEW", "it's"),
        SetEnv("BAR", "2"),
        UnsetEnv("NCCL_DEBUG"),
        UnsetEnv("FOO"),
    )
    assert (
        edited(SCRIPT, *changes)
        == """#!/bin/bash
MODEL=/models/x   # the model
export BAR=2
EXTRA="--ep-size 8 --enable-nccl-nvls"
A=1 NEW='it'"'"'s' exec python -m sglang.launch_server \\
    --model-path "$MODEL" \\
    --tp 4 \\
    --fork-flag 7 --odd-switch \\
    --lora-paths a "b c" \\
    --enable-nccl-nvls \\
    --page-size 16 2>&1 | tee log
"""
    )


def test_an_array_is_edited_where_its_items_stand() -> None:
    assert (
        edited(
            ARRAY, UnsetFlag("ep-size"), SetFlag("model-path", "x y"), SetFlag("dllm-fdfo", True)
        )
        == """ARGS=(
  --model-path 'x y'   # which
  --tp 8
)
if true; then B=2 nohup python -m sglang.launch_server "${ARGS[@]}" --dllm-fdfo > log & fi
"""
    )


def test_docker_options_stay_and_variables_become_options() -> None:
    assert (
        edited(
            DOCKER, SetFlag("ep-size", "8"), SetEnv("B", "x y"), SetEnv("FOO", "z"), UnsetEnv("A")
        )
        == """docker run --gpus all -it --rm \\
  --env=FOO=z \\
  -v /models:/models \\
  -e B='x y' \\
  lmsysorg/sglang:latest \\
  python3 -m sglang.launch_server \\
  --model-path m \\
  --tp 8 \\
  --ep-size 8
"""
    )


def test_a_unit_changes_in_its_exec_and_environment_lines_only() -> None:
    assert (
        edited(
            UNIT,
            SetFlag("ep-size", "8"),
            UnsetFlag("tp-size"),
            SetEnv("B", "100%"),
            UnsetEnv("NCCL_DEBUG"),
            UnsetEnv("FOO"),
        )
        == """[Unit]
Description=server
[Service]
Environment=A=1
Environment="B=100%%"
ExecStart=/usr/bin/python3 -m sglang.launch_server \\
    --model-path m \\
    # eight of them
    --served-model-name "a b" \\
    --ep-size 8
Restart=always
"""
    )


def test_a_config_file_keeps_its_comments() -> None:
    assert (
        edited(
            YAML,
            SetFlag("tp-size", "4"),
            UnsetFlag("cuda-graph-bs-decode"),
            SetFlag("chat-template", "010"),
        )
        == """# ours
model-path: m
tp-size: 4   # eight

# the last part
enable-metrics: true
chat-template: "010"
"""
    )


def test_a_config_file_does_not_take_what_the_engine_refuses_there() -> None:
    command = read_command(YAML, TABLE)
    with pytest.raises(UsageError) as caught:
        write_command(
            command, apply(command.config, [SetFlag("lora-strict-loading", False)]), TABLE
        )
    assert caught.value.hint == "keep the file and add to the command: --no-lora-strict-loading"
    with pytest.raises(UsageError, match="does not take --chat-template from a config file"):
        write_command(command, apply(command.config, [SetFlag("chat-template", "-x")]), TABLE)
    with pytest.raises(UsageError, match="no environment variables"):
        write_command(command, Config.of(command.config.flag_values(), {"A": "1"}))


def test_a_merged_config_file_stays_until_something_must_go(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("model-path: m\nep-size: 8\n")
    command = read_command(f"{SERVER} --config c.yaml --tp 4", TABLE, base=tmp_path)
    new = apply(command.config, [SetFlag("ep-size", "4")])
    written = write_command(command, new)
    assert written == f"{SERVER} --config c.yaml --tp 4 --ep-size 4"
    assert read_command(written, TABLE, base=tmp_path).config == new
    assert (
        write_command(command, command.config.without(["ep-size"]))
        == f"{SERVER} --tp 4 --model-path m"
    )


def test_a_command_without_a_text_becomes_one_line() -> None:
    config = Config.of({"model-path": "a b", "tp-size": "8"}, {"A": "$x"})
    bare = ServerCommand("shell", ("python3", "-m", "sglang.launch_server"), config)
    assert (
        write_command(bare, config)
        == "A='$x' python3 -m sglang.launch_server --model-path 'a b' --tp-size 8\n"
    )
    inside = ServerCommand("docker", ("sglang", "serve"), config, wrapper=("docker", "run", "img"))
    assert (
        write_command(inside, config)
        == "docker run -e A='$x' img sglang serve --model-path 'a b' --tp-size 8\n"
    )


def test_an_argv_comes_back_as_one_line() -> None:
    words = ["env", "A=1", *SERVER.split(), "--model", "x y", "--tp", "8"]
    command = read_argv(words, TABLE)
    new = apply(command.config, [SetFlag("tp-size", "4"), SetEnv("A", "2")])
    assert write_command(command, new) == f"env A=2 {SERVER} --model 'x y' --tp 4"


def ran(folder: Path, text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Arguments and environment of the `python` that a real bash starts for this text."""
    fake = folder / "python"
    if not fake.exists():
        fake.write_text('#!/bin/sh\nprintf "%s\\0" "$@" >&3\nenv -0 >&4\n')
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    outputs = [folder / "argv", folder / "env"]
    script = f"exec 3>{outputs[0]} 4>{outputs[1]}\n{text}"
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", script], env=env, cwd=folder, check=True, capture_output=True)
    words, variables = (o.read_bytes().decode().split("\0")[:-1] for o in outputs)
    return tuple(words), dict(v.split("=", 1) for v in variables)


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT.replace(" | tee log", ""),
        ARRAY.replace(" &", ";"),
        LINE,
        f'bash -c "FOO=x {SERVER} --tp 8"',
    ],
)
def test_a_real_shell_starts_exactly_the_config_that_was_written(tmp_path: Path, text: str) -> None:
    values = [v for v in HOSTILE if v != "-1"]
    for start in range(0, len(values), 6):
        chunk = values[start : start + 6]
        flags: dict[str, Value] = {
            "model-path": chunk[0],
            "lora-paths": tuple(v for v in chunk if v[:1] != "-"),
        }
        new = Config.of(
            {**flags, "served-model-name": chunk[-1], "tp-size": "2"},
            {"A": chunk[1], "NEW": chunk[2]},
        )
        written = write_command(read_command(text, TABLE), new)
        words, variables = ran(tmp_path, written)
        assert words[:2] == ("-m", "sglang.launch_server")
        assert TABLE.parse(words[2:]).config == Config.of(new.flag_values())
        assert {n: variables.get(n) for n in ("A", "NEW", "FOO")} == {
            "FOO": None,
            **new.env_values(),
        }


@pytest.mark.parametrize("text", [SCRIPT.replace(" | tee log", ""), ARRAY.replace(" &", ";"), LINE])
def test_a_real_shell_starts_what_was_read(tmp_path: Path, text: str) -> None:
    command = read_command(text, TABLE)
    words, variables = ran(tmp_path, text)
    assert TABLE.parse(words[2:]).config.flag_values() == command.config.flag_values()
    assert {n: variables[n] for n in command.config.env_values()} == command.config.env_values()


@given(st.lists(TEXT, max_size=4))
@settings(max_examples=60)
def test_quoted_words_are_split_as_shlex_does(words: list[str]) -> None:
    line = shlex.join(
        ["python", "-m", "sglang.launch_server", "--lora-paths", *[f"x{w}" for w in words]]
    )
    command = read_command(line, TABLE)
    assert (*command.program, *argv(command.config)) == tuple(shlex.split(line))
