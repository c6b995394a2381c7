"""Read the words of `docker run` and `podman run` up to the image.

In:  the words from `docker` on.
Out: where the image stands, the environment, working directory, entry point.
Not: the command inside the container (program.py).

Source: the option lists of docker-run(1) of Docker 28 and podman-run(1) of podman 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from triage.command.source import NAME, EnvSite, Word, values
from triage.errors import UsageError

PROGRAMS = frozenset(["docker", "podman", "nerdctl"])
_GLOBAL_OF_PODMAN = """
    --root --runroot --runtime --runtime-flag --events-backend --cgroup-manager --conmon --hooks-dir
    --identity --imagestore --module --namespace --network-cmd-path --network-config-dir --ssh
    --storage-driver --storage-opt --tmpdir --volumepath
"""
GLOBAL_WITH_VALUE = frozenset(
    ["--context", "-c", "--host", "-H", "--config", "--log-level", "-l", "--connection", "--url"]
) | frozenset(_GLOBAL_OF_PODMAN.split())
_WITH_VALUE = """
    add-host annotation attach blkio-weight blkio-weight-device cap-add cap-drop cgroup-conf
    cgroup-parent cgroupns cgroups cidfile conmon-pidfile cpu-count cpu-percent cpu-period cpu-quota
    cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-cpus cpuset-mems detach-keys device
    device-cgroup-rule device-read-bps device-read-iops device-write-bps device-write-iops dns
    dns-opt dns-option dns-search domainname entrypoint env env-file env-merge expose gidmap gpus
    group-add group-entry health-cmd health-interval health-retries health-start-interval
    health-start-period health-timeout hostname hostuser image-volume init-path io-maxbandwidth
    io-maxiops ip ip6 ipc isolation kernel-memory label label-file link link-local-ip log-driver
    log-opt mac-address memory memory-reservation memory-swap memory-swappiness mount name net
    net-alias network network-alias oom-score-adj os passwd-entry personality pid pidfile pids-limit
    platform pod preserve-fds publish pull requires restart runtime sdnotify secret security-opt
    shm-size stop-signal stop-timeout storage-opt subgidname subuidname sysctl systemd timeout tmpfs
    tz uidmap ulimit umask unsetenv user userns uts variant volume volume-driver volumes-from
    workdir
"""
_SWITCHES = """
    detach disable-content-trust env-host help http-proxy init interactive no-healthcheck no-hosts
    oom-kill-disable privileged publish-all quiet read-only read-only-tmpfs replace rm rmi rootfs
    sig-proxy tls-verify tty unsetenv-all use-api-socket
"""
WITH_VALUE = frozenset(_WITH_VALUE.split())
SWITCHES = frozenset(_SWITCHES.split())
SHORT_WITH_VALUE = {
    "a": "attach",
    "c": "cpu-shares",
    "e": "env",
    "h": "hostname",
    "l": "label",
    "m": "memory",
    "p": "publish",
    "u": "user",
    "v": "volume",
    "w": "workdir",
}
SHORT_SWITCHES = frozenset("ditPq")


@dataclass(slots=True)
class DockerRun:
    """What stands before the command of a `docker run`; `image` is its position in the words."""

    image: int
    sites: list[EnvSite] = field(default_factory=list)
    workdir: str = ""
    entrypoint: str = ""
    notes: list[str] = field(default_factory=list)


def read_docker_run(words: Sequence[Word]) -> DockerRun | None:
    """The options of the run; None if the words are another docker command.

    Raises:
        UsageError: an option is not known, so the image cannot be told; or no image.
    """
    at = _after_run(values(words))
    if at is None:
        return None
    run = DockerRun(image=-1)
    while at < len(words):
        word = words[at].value
        if word == "--":
            at += 1
            break
        if not word.startswith("-") or word == "-":
            break
        at = _option(run, words, at)
    if at >= len(words):
        raise UsageError(
            f"{words[0].value} run names no image", hint=f"{words[0].value} run IMAGE COMMAND"
        )
    run.image = at
    return run


def _after_run(words: tuple[str, ...]) -> int | None:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in GLOBAL_WITH_VALUE else 1
    if words[at : at + 1] == ("container",):
        at += 1
    return at + 1 if words[at : at + 1] in (("run",), ("create",)) else None


def _option(run: DockerRun, words: Sequence[Word], at: int) -> int:
    """Reads the option at this position; the position behind it."""
    word = words[at].value
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        lead = f"--{name}="
        if name in SWITCHES:
            return at + 1
        if name not in WITH_VALUE and not equals:
            raise UsageError(
                f"{words[0].value} run: the option --{name} is not known, so the image cannot be"
                " told from its value",
                hint=f"write it as --{name}=VALUE",
            )
    else:
        name, value, lead = _short(words[0].value, word)
        if not name:
            return at + 1
        equals = value
    if equals:
        _take(run, name, value, (words[at], words[at], lead))
        return at + 1
    if at + 1 < len(words):
        _take(run, name, words[at + 1].value, (words[at], words[at + 1], ""))
    return at + 2


def _short(program: str, word: str) -> tuple[str, str, str]:
    """A cluster such as `-it` or `-eA=1`: (option with a value or "", value, what is before it)."""
    for position, letter in enumerate(word[1:], 1):
        if letter in SHORT_WITH_VALUE:
            rest = word[position + 1 :]
            skip = rest.startswith("=")
            return SHORT_WITH_VALUE[letter], rest[skip:], word[: position + 1 + skip]
        if letter not in SHORT_SWITCHES:
            raise UsageError(
                f"{program} run: the option -{letter} in {word} is not known",
                hint=f"{program} run --help",
            )
    return "", "", ""


def _take(run: DockerRun, name: str, value: str, place: tuple[Word, Word, str]) -> None:
    first, last, lead = place
    match name:
        case "env":
            variable, equals, text = value.partition("=")
            if equals and NAME.match(variable):
                site = EnvSite(
                    variable, text, first.start, last.start, last.end, lead, open=last.open
                )
                run.sites.append(site)
            else:
                run.notes.append(f"-e {variable}: taken from the caller's environment, not known")
        case "env-file":
            run.notes.append(f"--env-file {value} is not read")
        case "workdir":
            run.workdir = value
        case "entrypoint":
            run.entrypoint = value
        case _:
            pass
