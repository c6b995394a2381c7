"""What `docker inspect` or `podman inspect` says, as the `docker run` line of such a container.

In:  the JSON of one container. Out: the line, as text.
Not: reading the line (docker.py), or asking an engine.

Source: the API's ContainerInspect of Docker 28 (`Config`, `HostConfig`); podman keeps the words
themselves, `Config.CreateCommand`. What the image set and the command did not is in `Config`,
too, and is written out: the container is the same.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from triage.errors import UsageError

LOOKS_LIKE = re.compile(r"\s*\[?\s*\{")
# Variables that the engine or the base image sets in each container.
_USUAL = frozenset(["PATH", "HOME", "HOSTNAME", "TERM", "container"])
_DEFAULT_SHM = 64 << 20
_OWN = frozenset(["", "private", "default", "bridge", "shareable"])  # nothing is shared
_REPEATED = (
    ("Binds", "--volume"),
    ("CapAdd", "--cap-add"),
    ("CapDrop", "--cap-drop"),
    ("SecurityOpt", "--security-opt"),
)


def run_line(text: str) -> str | None:
    """The line that starts a container like the inspected one; None if the text is no such JSON.

    Raises:
        UsageError: it is of several containers, or of none that says how it was started.
    """
    if not LOOKS_LIKE.match(text) or '"Config"' not in text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = found if isinstance(found, list) else [found]
    if not found or not all(isinstance(one, dict) and "Config" in one for one in found):
        return None
    if len(found) > 1:
        raise UsageError(
            f"this is the inspection of {len(found)} containers", hint="docker inspect NAME"
        )
    config = _part(found[0], "Config")
    words = config.get("CreateCommand")
    if not (isinstance(words, list) and words):
        words = ["docker", "run", *_options(found[0], config), *_command(config)]
    if not all(isinstance(word, str) for word in words):
        raise UsageError("the inspected container says no command", hint="docker inspect NAME")
    return shlex.join(words) + "\n"


def _options(container: dict[str, Any], config: dict[str, Any]) -> list[str]:
    host = _part(container, "HostConfig")
    words = [*_namespaces(host), *_limits(host)]
    for name, option in _REPEATED:
        words += [word for value in _list(host, name) for word in (option, str(value))]
    for device in filter(_is_part, _list(host, "Devices")):
        words += ["--device", f"{device.get('PathOnHost')}:{device.get('PathInContainer')}"]
    for name, option in (("User", "--user"), ("WorkingDir", "--workdir")):
        if isinstance(config.get(name), str) and config[name]:
            words += [option, config[name]]
    for variable in map(str, _list(config, "Env")):
        if variable.partition("=")[0] not in _USUAL:
            words += ["--env", variable]
    return words


def _namespaces(host: dict[str, Any]) -> list[str]:
    """GPUs, and what the container shares."""
    words: list[str] = []
    for request in filter(_is_part, _list(host, "DeviceRequests")):
        ids = request.get("DeviceIDs")
        words += ["--gpus", f"device={','.join(map(str, ids))}" if ids else "all"]
    for name, option in (("IpcMode", "--ipc"), ("PidMode", "--pid"), ("NetworkMode", "--network")):
        mode = host.get(name)
        if isinstance(mode, str) and mode not in _OWN:
            words += [option, mode]
    return [*words, "--privileged"] if host.get("Privileged") is True else words


def _limits(host: dict[str, Any]) -> list[str]:
    words: list[str] = []
    shm = host.get("ShmSize")
    if isinstance(shm, int) and shm not in (0, _DEFAULT_SHM) and host.get("IpcMode") != "host":
        words += ["--shm-size", str(shm)]
    if isinstance(host.get("Memory"), int) and host["Memory"]:
        words += ["--memory", str(host["Memory"])]
    for limit in filter(_is_part, _list(host, "Ulimits")):
        said = f"{limit.get('Name')}={limit.get('Soft')}:{limit.get('Hard')}"
        words += ["--ulimit", said]
    return words


def _is_part(value: object) -> bool:
    return isinstance(value, dict)


def _command(config: dict[str, Any]) -> list[str]:
    """The entry point as an option, the image, and what follows it."""
    entry = config.get("Entrypoint")
    first, *rest = [entry] if isinstance(entry, str) else list(map(str, entry or [""]))
    option = ["--entrypoint", first] if first else []
    return [*option, str(config.get("Image", "")), *rest, *map(str, _list(config, "Cmd"))]


def _part(value: dict[str, Any], name: str) -> dict[str, Any]:
    part = value.get(name)
    return part if isinstance(part, dict) else {}


def _list(value: dict[str, Any], name: str) -> list[Any]:
    part = value.get(name)
    return part if isinstance(part, list) else []
