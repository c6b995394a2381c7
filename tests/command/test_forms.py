"""Every form in which people have a server command is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from triage.command import read_argv, read_command, read_command_file
from triage.core.config import Config
from triage.core.flags import table_of
from triage.errors import NothingError, TriageError, UsageError

FLAGS = Path(__file__).parents[2] / "triage/knowledge/flags/sglang-0.5.23.yaml"
TABLE = table_of(yaml.load(FLAGS.read_text(), yaml.CSafeLoader))
SERVER = "python -m sglang.launch_server"


def flags(text: str) -> dict[str, str | bool | tuple[str, ...]]:
    return read_command(text, TABLE).config.flag_values()


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (f"{SERVER} --model m", ("python", "-m", "sglang.launch_server")),
        ("sglang serve --model-path m", ("sglang", "serve")),
        ("python3 /opt/sglang/launch_server.py --model m", ("python3", "/opt/sglang/launch_server.py")),
        ("/opt/run.sh serve --model-path m", ("/opt/run.sh", "serve")),
        ("python -m triage.replay --landscape f.yaml -- --model-path m", ("python", "-m", "triage.replay", "--landscape", "f.yaml", "--")),
        (f"numactl -N 0 --membind=0 {SERVER} --model m", ("numactl", "-N", "0", "--membind=0", "python", "-m", "sglang.launch_server")),
        (f"taskset -c 0-3 {SERVER} --model m", ("taskset", "-c", "0-3", "python", "-m", "sglang.launch_server")),
        (f"exec nohup setsid timeout -k 5 600 {SERVER} --model m", ("python", "-m", "sglang.launch_server")),
        (f"bash -lc '{SERVER} --model m'", ("python", "-m", "sglang.launch_server")),
    ],
)  # fmt: skip
def test_the_program_ends_where_the_flags_begin(text: str, program: tuple[str, ...]) -> None:
    command = read_command(text, TABLE)
    assert command.program == program
    assert command.config.flag_values() == {"model-path": "m"}


def test_an_argv_is_read_with_the_environment_that_env_sets() -> None:
    command = read_argv(
        ["env", "A=a b", "python", "-m", "sglang.launch_server", "--model", "$m"], TABLE
    )
    assert command.form == "argv"
    assert command.config == Config.of({"model-path": "$m"}, {"A": "a b"})
    assert command.program == ("python", "-m", "sglang.launch_server")
    assert command.notes == ()


def test_a_script_is_read_with_its_variables_and_exports() -> None:
    command = read_command(
        """#!/bin/bash
set -euo pipefail
# MODEL=/old
MODEL=/models/x; TP=8
: "${PORT:=30000}"
export NCCL_DEBUG=INFO FOO="a b"
BAR=1
export BAR
cat > unused.yaml <<EOF
python -m sglang.launch_server --model wrong
EOF
cd /srv/"serve"
EXTRA="--ep-size 8 --enable-nccl-nvls"
ARGS=(--host 0.0.0.0   # everywhere
      --served-model-name "my model")
ARGS+=(--log-level 'de'"bug")
CUDA_VISIBLE_DEVICES=0,1 exec python -m sglang.launch_server \\
  --model-path "$MODEL" --tp ${TP} --port $PORT \\
  $EXTRA "${ARGS[@]}" --mem-fraction-static ${MEM:-0.88} 2>&1 | tee log.txt
""",
        TABLE,
    )
    assert command.form == "shell"
    assert command.cwd == "/srv/serve"
    assert command.config == Config.of(
        {
            "model-path": "/models/x",
            "tp-size": "8",
            "port": "30000",
            "ep-size": "8",
            "enable-nccl-nvls": True,
            "host": "0.0.0.0",
            "served-model-name": "my model",
            "log-level": "debug",
            "mem-fraction-static": "0.88",
        },
        {"NCCL_DEBUG": "INFO", "FOO": "a b", "BAR": "1", "CUDA_VISIBLE_DEVICES": "0,1"},
    )
    assert command.notes == ("--tp is short for --tp-size",)


def test_what_only_a_shell_could_know_stays_as_written_and_is_noted() -> None:
    command = read_command(
        "export LD_LIBRARY_PATH=/x:$LD_LIBRARY_PATH\n"
        f'{SERVER} --model-path $MODEL --port $(free port) --log-level "`x`" --host $((1+2)) "$@"',
        TABLE,
    )
    assert command.config == Config.of(
        {"model-path": "$MODEL", "port": "$(free port)", "log-level": "`x`", "host": "$((1+2))"}
    )
    assert (
        command.notes[0] == "LD_LIBRARY_PATH is left out of the environment: its value is not known"
    )
    assert "$MODEL is not set here: it stands as it is written" in command.notes
    assert "$(free port) is not run: it stands as it is written" in command.notes
    assert "the script's own arguments ($@) are not known: read without them" in command.notes
    assert not any("expects int" in note for note in command.notes)


def test_commands_that_a_launch_leaves_out_are_named() -> None:
    command = read_command(
        f"source /opt/venv/bin/activate\nulimit -l unlimited\n{SERVER} --model m", TABLE
    )
    assert command.notes == (
        "not part of the launch, run it yourself if it matters: source /opt/venv/bin/activate; ulimit -l unlimited",
    )


def test_the_first_of_two_servers_is_read() -> None:
    command = read_command(
        f"{SERVER} --model m --port 1 &\n{SERVER} --model m --port 2 &\nwait\n", TABLE
    )
    assert command.config.get("port") == "1"
    assert command.notes == ("the text starts more than one server: the first one is read",)


def test_single_quotes_keep_a_variable_from_being_expanded() -> None:
    assert flags(f"M=x\n{SERVER} --model '$M' --host \"\\$M\" --log-level \\$M") == {
        "model-path": "$M",
        "host": "$M",
        "log-level": "$M",
    }


def test_a_server_of_a_script_is_found_behind_then_and_time() -> None:
    command = read_command(f"if true; then time A=1 {SERVER} --model m; fi", TABLE)
    assert command.config == Config.of({"model-path": "m"}, {"A": "1"})
    assert command.program == ("python", "-m", "sglang.launch_server")


def test_docker_run_is_split_at_its_image() -> None:
    command = read_command(
        """sudo docker --context x run -itd --gpus all --ipc=host --shm-size 32g -p 30000:30000 \\
          -v ~/.cache:/root/.cache -e HF_TOKEN=t -eA=1 --env=B="x y" -e SECRET --env-file f \\
          --ulimit memlock=-1 --rm -w /work --name s lmsysorg/sglang:latest \\
          python3 -m sglang.launch_server --model-path m --tp 8""",
        TABLE,
    )
    assert command.form == "docker"
    assert command.wrapper[-1] == "lmsysorg/sglang:latest"
    assert command.wrapper[:5] == ("sudo", "docker", "--context", "x", "run")
    assert command.program == ("python3", "-m", "sglang.launch_server")
    assert command.cwd == "/work"
    assert command.config == Config.of(
        {"model-path": "m", "tp-size": "8"}, {"HF_TOKEN": "t", "A": "1", "B": "x y"}
    )
    assert "-e SECRET: taken from the caller's environment, not known" in command.notes


def test_a_shell_inside_a_container_is_read() -> None:
    command = read_command(
        f"CUDA_VISIBLE_DEVICES=0 podman run --entrypoint bash -e A=1 img -c 'export A=2 && {SERVER} --model m'",
        TABLE,
    )
    assert command.form == "docker"
    assert command.config == Config.of({"model-path": "m"}, {"A": "2"})
    assert (
        "CUDA_VISIBLE_DEVICES: set for the container tool, not inside the container"
        in command.notes
    )


def test_an_unknown_docker_option_stops_because_the_image_cannot_be_told() -> None:
    with pytest.raises(UsageError) as caught:
        read_command(f"docker run --gizmo x img {SERVER} --model m", TABLE)
    assert caught.value.message == (
        "docker run: the option --gizmo is not known, so the image cannot be told from its value"
    )
    assert caught.value.hint == "write it as --gizmo=VALUE"


UNIT = r"""# /etc/systemd/system/sglang.service
[Unit]
Description=server
[Service]
Environment="A=a b" B=2
Environment='C=100%%'
WorkingDirectory=-/srv
EnvironmentFile=/etc/default/sglang
ExecStart=-/usr/bin/python3 -m sglang.launch_server \
    --model-path ${MODEL_DIR}/x \
    # a comment between
    --served-model-name "a \"b\" \x41" \
    --host $B --port $$1 --log-level 'in%%fo'
Restart=always
[Install]
ExecStart=/bin/false
"""


def test_a_unit_is_read_by_the_rules_of_systemd() -> None:
    command = read_command(UNIT, TABLE)
    assert command.form == "systemd"
    assert command.cwd == "/srv"
    assert command.program == ("/usr/bin/python3", "-m", "sglang.launch_server")
    assert command.config == Config.of(
        {
            "model-path": "${MODEL_DIR}/x",
            "served-model-name": 'a "b" A',
            "host": "2",
            "port": "$1",
            "log-level": "in%fo",
        },
        {"A": "a b", "B": "2", "C": "100%"},
    )
    assert command.notes[:2] == (
        "EnvironmentFile=/etc/default/sglang is not read",
        "${MODEL_DIR} is not set by Environment=: it stands as it is written",
    )


def test_drop_ins_beside_a_unit_come_after_it_in_their_order(tmp_path: Path) -> None:
    unit = tmp_path / "s.service"
    unit.write_text(f"[Service]\nEnvironment=A=1\nExecStart={SERVER} --model m\n")
    folder = tmp_path / "s.service.d"
    folder.mkdir()
    (folder / "20-b.conf").write_text("[Service]\nEnvironment=A=3\n")
    (folder / "10-a.conf").write_text(
        f"[Service]\nEnvironment=A=2\nExecStart=\nExecStart={SERVER} --model n\n"
    )
    command = read_command_file(unit, TABLE)
    assert command.config == Config.of({"model-path": "n"}, {"A": "3"})


def test_a_container_in_a_unit_is_read() -> None:
    command = read_command(
        "[Service]\nExecStart=/usr/bin/docker run --rm -e A=$$x img sglang serve m --tp 2\n", TABLE
    )
    assert command.form == "systemd"
    assert command.wrapper == ("/usr/bin/docker", "run", "--rm", "-e", "A=$x", "img")
    assert command.config == Config.of({"model-path": "m", "tp-size": "2"}, {"A": "$x"})


def test_a_config_file_is_read_as_the_engine_reads_it() -> None:
    command = read_command(
        "# ours\nmodel-path: m\ntp: 8\nmem-fraction-static: 0.90\nenable-metrics: on\n"
        "disable-radix-cache: false\ncuda-graph-bs-decode: [1, 2]\njson-model-override-args: {a: 1}\n"
        "chat-template: 010\nhost: --x\nlora-strict-loading: true\nep_size: 4\npage-size:\n",
        TABLE,
    )
    assert command.form == "sglang-config"
    assert command.config.flag_values() == {
        "model-path": "m",
        "tp-size": "8",
        "mem-fraction-static": "0.9",
        "enable-metrics": True,
        "cuda-graph-bs-decode": ("1", "2"),
        "json-model-override-args": '{"a": 1}',
        "chat-template": "8",
        "host": "--x",
        "lora-strict-loading": True,
        "ep-size": "4",
        "page-size": "None",
    }
    assert command.problems == (
        "host: --x begins with a dash, the engine takes it for a flag",
        "sglang 0.5.23 refuses lora-strict-loading in a config file: it belongs on the command line",
        "ep_size: the engine accepts only the spelling ep-size",
    )
    assert "page-size has no value: the engine reads None" in command.notes


def test_a_config_file_of_a_command_is_merged_and_the_command_line_wins(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("model-path: m\ntp-size: 8\nep-size: 8\n")
    text = f"cd conf\n{SERVER} --tp 4 --config c.yaml"
    (tmp_path / "conf").mkdir()
    (tmp_path / "c.yaml").rename(tmp_path / "conf/c.yaml")
    command = read_command(text, TABLE, base=tmp_path)
    assert command.config == Config.of({"model-path": "m", "tp-size": "4", "ep-size": "8"})
    assert "--config c.yaml is merged in; the command line wins" in command.notes


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ("--config gone.yaml", "--config gone.yaml is not read: no such file or directory"),
        ("--config c.json", "--config c.json: the engine accepts only .yaml and .yml"),
        (
            "--config=c.yaml",
            "the engine reads a file only after the exact word --config: no effect",
        ),
        ("--config a --config b", "--config is given more than once: the engine refuses that"),
    ],
)
def test_a_config_file_that_cannot_be_merged_stays_a_flag(words: str, note: str) -> None:
    command = read_command(f"{SERVER} --model m {words}", TABLE)
    assert command.config.get("config") is not None
    assert note in command.notes


def test_a_log_gives_the_config_of_its_first_dump(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(
        b"\xff\x00 noise\n[2026-01-01 10:00:00] server_args={'model_path': 'm', 'tp_size': 8}\n"
        b"later server_args={'model_path': 'n'}\n"
    )
    command = read_command_file(log, TABLE)
    assert command.form == "server-args"
    assert command.config == Config.of({"model-path": "m", "tp-size": "8"})
    assert command.text == "[2026-01-01 10:00:00] server_args={'model_path': 'm', 'tp_size': 8}"


BOMB = "a: &a [x, x]\n" + "".join(
    f"b{i}: &b{i} [*{p}, *{p}]\n" for i, p in enumerate(["a", *[f"b{j}" for j in range(40)]])
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the command is empty"),
        (" \n\t", "the command is empty"),
        ("ls -l", "the command starts no SGLang server that triage can see"),
        ("python -m sglang.launch_server\0 --model m", "the command is no text: it holds a NUL byte"),
        ("x" * (10 << 20), "no command is 10485760 characters long, and no line says server_args="),
        (f"{SERVER} --model 'm", "line 1 of the command: ' is opened and never closed"),
        (f"A=1\n{SERVER} --model $(x", "line 2 of the command: $( is opened and never closed"),
        ("A=(1 2", "line 1 of the command: ( is opened and never closed"),
        ("[Service]\nRestart=no\n", "the unit has no ExecStart="),
        ("[Service]\nExecStart=/bin/true --x\n", "the unit starts no SGLang server that triage can see"),
        ("[Service]\nExecStart=python 'x\n", "line 2 of the unit: ' is opened and never closed"),
        ("model-path: [" + "[" * 40 + "]" * 40, "the config file: nested deeper than 32 levels"),
        (BOMB, "the config file: aliases are not supported, write the values out"),
        ("enable-metrics: 5\n", "enable-metrics: a switch takes true or false, not 5"),
        ("some: yaml\nof: others\n", "the YAML file starts no SGLang server that triage can see"),
        ("model-path: !!python/object/apply:os.system [x]\n", "the config file:1: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
        ("docker run --rm", "docker run names no image"),
        ("V0=xxxxxxxx\n" + "".join(f'V{i + 1}="$V{i}$V{i}"\n' for i in range(99)), "the variables of the command grow beyond any command line"),
        ("A=(a b)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 99, "the variables of the command grow beyond any command line"),
        ("if x; then " * 201, "the script is nested deeper than 200 blocks"),
        ("a: b\n" * 20_000, "the config file: too long for a config file"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(TriageError) as caught:
        read_command(text, TABLE)
    assert caught.value.message == sentence


def test_broken_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(UsageError, match=r"^the config file:2: "):
        read_command("model-path: m\n\tx: y\n", TABLE)
    with pytest.raises(UsageError, match=r"^the config file:"):
        read_command("model-path: " + "[" * 5000, TABLE)


def test_a_text_of_every_odd_character_never_gives_another_error() -> None:
    sentences: list[str] = []
    for code in [*range(1, 256), 0x2028, 0xFEFF, 0x1F600]:
        for text in (
            f"{SERVER} --model {chr(code)}",
            f"[Service]\nExecStart={SERVER} --model {chr(code)}",
            f"model-path: {chr(code)}",
        ):
            try:
                read_command(text, TABLE)
            except TriageError as error:
                sentences.append(error.message)
    assert sentences
    assert [said for said in sentences if "\n" in said] == []


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_command_file(tmp_path / "gone", TABLE)
    with pytest.raises(UsageError, match="is a directory"):
        read_command_file(tmp_path, TABLE)
    (tmp_path / "x").write_bytes(b"python \xff")
    with pytest.raises(UsageError, match=r"not UTF-8 text \(byte 7\)"):
        read_command_file(tmp_path / "x", TABLE)
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(NothingError, match="x: the command is empty"):
        read_command_file(tmp_path / "x", TABLE)


def test_only_a_regular_file_is_opened(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match=r"pipe\.yaml: no regular file"):
        read_command_file(pipe, TABLE)
    with pytest.raises(UsageError, match=r"/dev/null: no regular file"):
        read_command_file(Path("/dev/null"), TABLE)
    command = read_command(f"{SERVER} --model m --config pipe.yaml", TABLE, base=tmp_path)
    assert f"--config {pipe} is not read: no regular file" in command.notes


def test_a_pipe_that_is_open_already_is_read() -> None:
    read, write = os.pipe()
    os.write(write, f"{SERVER} --model m".encode())
    os.close(write)
    command = read_command_file(Path(f"/dev/fd/{read}"), TABLE)
    os.close(read)
    assert command.config == Config.of({"model-path": "m"})


def test_a_log_without_its_arguments_is_no_script() -> None:
    log = (
        "[2026-11-29 17:08:41] Use sglang serve\n  Example: sglang serve --model-path\n"
        "[2026-11-29 17:08:42] done\n"
    )
    with pytest.raises(UsageError, match="this is a log"):
        read_command(log, TABLE)


def test_a_recipe_is_no_config_file_of_the_engine() -> None:
    with pytest.raises(UsageError, match="a file of triage's own"):
        read_command("schema: triage.recipe/1\nname: x\nengine: sglang\n", TABLE)


@pytest.mark.parametrize("shell", ["sh", "bash", "/bin/bash", "zsh"])
@pytest.mark.parametrize("before", ["srun -N 1", "srun --container-image=x", "mpirun -n 2", ""])
def test_a_flag_whose_value_is_the_name_of_a_shell_starts_none(before: str, shell: str) -> None:
    text = f"{before} {SERVER} --model-path m --served-model-name {shell} --tp 2".strip()
    assert flags(text) == {"model-path": "m", "served-model-name": shell, "tp-size": "2"}
