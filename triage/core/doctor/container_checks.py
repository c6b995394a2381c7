"""Checks of the words that start a container: shared memory, GPUs, limits, what it may do.

In:  Facts with a launch inside a container. Out: CHECKS.
Not: what is inside the image: it does not run yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.core.doctor.checks import Hit, check
from triage.core.doctor.facts import Facts
from triage.core.machine.facts import known

_DOCKER = "https://github.com/sgl-project/sglang/pull/1986"
RUNTIMES = ("docker", "podman", "nerdctl")


def _words(facts: Facts) -> tuple[str, ...]:
    """The options of `docker run`, each as `--name=value` or `--name`; () without a container."""
    wrapper = known(facts.launch).wrapper
    at = next((n for n, word in enumerate(wrapper) if _program(word) in RUNTIMES), None)
    if at is None:
        return ()
    joined, rest = [], list(wrapper[at + 1 : -1])  # the last word is the image
    while rest:
        word = rest.pop(0)
        if word.startswith("-") and "=" not in word and rest and not rest[0].startswith("-"):
            joined.append(f"{word}={rest.pop(0)}")
        else:
            joined.append(word)
    return tuple(joined)


def _program(word: str) -> str:
    return word.rpartition("/")[2]


def _runtime(wrapper: tuple[str, ...]) -> str:
    return next(filter(RUNTIMES.__contains__, map(_program, wrapper)), "docker")


def _has(words: tuple[str, ...], *starts: str) -> bool:
    return any(word.startswith(starts) for word in words)


@check(
    "container-shm",
    group="host",
    severity="error",
    sound="the container gets enough shared memory",
    breaks="NCCL: unhandled system error; ranks die with a bus error",
    source=_DOCKER,
    prevents=("nccl-shm-segment", "nccl-unhandled-system-error"),
)
def container_shm(facts: Facts) -> Iterator[Hit]:
    """Without a word about it a container has 64 MiB."""
    words, launch = _words(facts), known(facts.launch)
    given = ("--ipc=host", "--shm-size=", "--ipc=container")
    mounted = any("/dev/shm" in word for word in words)
    if words and launch.local_ranks > 1 and not _has(words, *given) and not mounted:
        told = (f"{_runtime(launch.wrapper)} run has neither --ipc=host nor --shm-size: 64 MiB",)
        fix = f"{_runtime(launch.wrapper)} run --ipc=host --shm-size 32g ..."
        yield Hit("The container gets 64 MiB of shared memory.", told, fix)


@check(
    "container-gpus",
    group="gpus",
    severity="error",
    sound="the container gets GPUs",
    breaks="the engine finds no accelerator",
    source="https://github.com/sgl-project/sglang/issues/7547",
    prevents=("no-accelerator",),
)
def container_gpus(facts: Facts) -> Iterator[Hit]:
    """No option that hands a GPU in."""
    words, launch = _words(facts), known(facts.launch)
    given = ("--gpus", "--device=nvidia.com/gpu", "--runtime=nvidia", "--device=/dev/nvidia",
             "--privileged")  # fmt: skip
    if words and launch.on_gpu and not _has(words, *given):
        told = (f"{_runtime(launch.wrapper)} run has no --gpus",)
        yield Hit(
            "The container gets no GPU.", told, f"{_runtime(launch.wrapper)} run --gpus all ..."
        )


@check(
    "container-memlock",
    group="host",
    severity="warning",
    sound="memory may be locked in the container where network cards are used",
    breaks="registering memory with a network card fails: Cannot allocate memory",
    source="https://github.com/NVIDIA/nccl-tests/issues/206",
    prevents=("rdma-memory-registration", "nvshmem-ibgda-permission"),
)
def container_memlock(facts: Facts) -> Iterator[Hit]:
    """Locking and the cards' devices, for a launch that talks to a network card."""
    words, launch = _words(facts), known(facts.launch)
    if not words or not launch.uses_rdma or _has(words, "--privileged"):
        return
    lacks = []
    if not any(word.startswith("--ulimit=memlock") for word in words):
        lacks.append("--ulimit memlock=-1")
    if not any("/dev/infiniband" in word for word in words):
        lacks.append("--device /dev/infiniband")
    if lacks:
        told = (f"{_runtime(launch.wrapper)} run has no {' and no '.join(lacks)}",)
        fix = f"{_runtime(launch.wrapper)} run {' '.join(lacks)} --cap-add IPC_LOCK ..."
        yield Hit("The container may not use network cards as the launch does.", told, fix)


CHECKS = (container_gpus, container_shm, container_memlock)
