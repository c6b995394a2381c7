"""A container that exists is launched again from what the engine says of it."""

from __future__ import annotations

import json

import pytest
from command_forms import SERVER, TABLE

from triage.command import read_command
from triage.errors import UsageError

DOCKER = {
    "Id": "4711",
    "Config": {
        "Image": "lmsysorg/sglang:v0.5.23",
        "Entrypoint": ["/opt/nvidia/entrypoint.sh"],
        "Cmd": [*SERVER.split(), "--model-path", "/models/m", "--tp", "8"],
        "Env": ["PATH=/usr/bin", "HF_TOKEN=planted-secret", "NCCL_DEBUG=INFO"],
        "WorkingDir": "/sgl-workspace",
    },
    "HostConfig": {
        "Binds": ["/models:/models:ro"],
        "IpcMode": "host",
        "ShmSize": 34359738368,
        "NetworkMode": "host",
        "DeviceRequests": [{"Count": -1, "Capabilities": [["gpu"]]}],
        "Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1}],
        "Privileged": False,
    },
}


def test_a_container_of_docker_is_read_from_its_inspection() -> None:
    command = read_command(json.dumps([DOCKER]), TABLE)
    assert command.config.flag_values() == {"model-path": "/models/m", "tp-size": "8"}
    assert command.config.env_values()["NCCL_DEBUG"] == "INFO"
    assert "PATH" not in command.config.env_values()
    run = " ".join(command.wrapper)
    assert run.startswith("docker run --gpus all --ipc host --network host ")
    assert "--volume /models:/models:ro" in run
    assert "--ulimit memlock=-1:-1" in run
    assert "--shm-size" not in run
    assert command.wrapper[-1] == "lmsysorg/sglang:v0.5.23"


def test_a_container_of_podman_keeps_its_own_words() -> None:
    words = [
        "podman",
        "run",
        "-d",
        "--name",
        "x",
        "-e",
        "A=b",
        "image",
        *SERVER.split(),
        "--tp",
        "2",
    ]
    command = read_command(json.dumps([{"Config": {"CreateCommand": words, "Env": []}}]), TABLE)
    assert command.config.flag_values() == {"tp-size": "2"}
    assert command.config.env_values() == {"A": "b"}


def test_two_containers_are_no_command() -> None:
    with pytest.raises(UsageError, match="2 containers"):
        read_command(json.dumps([DOCKER, DOCKER]), TABLE)
