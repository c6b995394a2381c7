"""A command is written back in its form: read again it is the new config, and the rest is untouched."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path

import pytest
from command_forms import (
    ARRAY,
    BATCH,
    DEPLOYMENT,
    DOCKER,
    ENV,
    FORMS,
    HOSTILE,
    LINE,
    POD,
    SCRIPT,
    SERVER,
    TABLE,
    TEXT,
    UNIT,
    YAML,
    flag_values,
    in_a_config_file,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triage.command import read_argv, read_command, write_command
from triage.command.dropin import write_drop_in
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
from triage.errors import UsageError


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


@pytest.mark.parametrize("form", ["unit", "container-unit"])
@given(flags=flag_values(), env=ENV)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_unit_with_its_drop_in_is_read_as_the_new_config(
    form: str, flags: dict[str, Value], env: dict[str, str]
) -> None:
    command = read_command(FORMS[form], TABLE)
    new = Config.of(flags, env)
    drop_in = write_drop_in(command, new, TABLE)
    assert read_command(f"{FORMS[form]}\n{drop_in}", TABLE).config == new


def test_a_drop_in_holds_what_changes_and_nothing_else() -> None:
    command = read_command(UNIT, TABLE)
    assert write_drop_in(command, command.config) == ""
    changes = (SetFlag("tp-size", "4"), SetEnv("A", "2"))
    drop_in = write_drop_in(command, apply(command.config, changes))
    assert drop_in.split("[Service]\n")[1] == (
        "Environment=A=2\nExecStart=\nExecStart=/usr/bin/python3 -m sglang.launch_server \\\n"
        "    --model-path m \\\n    # eight of them\n    --tp 4 \\\n"
        '    --served-model-name "a b"\n'
    )
    fewer = write_drop_in(command, apply(command.config, [UnsetEnv("NCCL_DEBUG")]))
    assert fewer.split("[Service]\n")[1] == (
        'Environment=\nEnvironment="FOO=a b"\nEnvironment=A=1\n'
    )


def test_a_manifest_changes_in_its_items_only() -> None:
    changes = (
        SetFlag("tp-size", "4"),
        SetFlag("trust-remote-code", True),
        UnsetFlag("served-model-name"),
        SetEnv("A", "2"),
        SetEnv("NEW", "yes"),
        UnsetEnv("FOO"),
    )
    assert edited(POD, *changes) == POD.replace('value: "1"', 'value: "2"').replace(
        "      env:\n", '      env:\n        - name: NEW\n          value: "yes"\n'
    ).replace("        - name: FOO\n          value: a b\n", "").replace(
        '"--tp=8"', '--tp-size\n        - "4"'
    ).replace(
        '        - --served-model-name\n        - "$(FOO) $$(x)"\n',
        "        - --trust-remote-code\n",
    )


def test_a_script_in_a_manifest_stays_a_block() -> None:
    changes = (SetFlag("tp-size", "4"), SetFlag("trust-remote-code", True), SetEnv("A", "2"))
    assert edited(DEPLOYMENT, *changes) == DEPLOYMENT.replace("A=1", "A=2").replace(
        "--tp 8\n", "--tp 4 \\\n            --trust-remote-code\n"
    )


def test_a_batch_script_keeps_its_directives() -> None:
    assert edited(BATCH, SetFlag("tp-size", "4"), UnsetEnv("FOO")) == BATCH.replace(
        "--tp 8", "--tp 4"
    ).replace(" FOO='a b'", "")


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
