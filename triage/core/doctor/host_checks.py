"""Checks of the host: shared memory, limits, RAM, name, network, what containers forbid.

In:  Facts. Out: CHECKS.
Not: disks and caches (file_checks.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.core.doctor.checks import Hit, Severity, check
from triage.core.doctor.facts import Facts
from triage.core.machine.facts import Unavailable, known, known_or
from triage.core.machine.gpus import Gpu

SHM_MIB = 1024
# Names that collectives, torch and SGLang give to their files in /dev/shm.
LEFTOVERS = ("nccl-", "sglang", "torch_", "sem.mp-", "psm_", "cuda.shm", "vllm", "mooncake")
LEFT_AFTER_S = 60.0
NOFILE = 65_535  # Source: SGLang 0.5.23 raises the soft limit to this at start
FEW_FILES = 4096
# Source: SGLang 0.5.23, utils/numa_utils: what is forbidden is found out, and left out
ASKS_FIRST = (0, 5, 23)
MEMLOCK_KIB = 8 << 20
RESERVE_MIB = 10 * 1024  # Source: SGLang 0.5.23, mem_cache/pool_host/base.py
GB_IN_MIB = 1e9 / (1 << 20)
HYBRID = ("linear_num_value_heads", "mamba_d_state", "ssm_state_size", "mamba_num_heads")


@check(
    "shm-small",
    group="host",
    severity="error",
    sound="/dev/shm is large enough",
    breaks="NCCL: unhandled system error; ranks die with a bus error",
    source="https://github.com/sgl-project/sglang/pull/1986",
    prevents=("nccl-shm-segment", "nccl-unhandled-system-error"),
)
def shm_small(facts: Facts) -> Iterator[Hit]:
    """Docker gives 64 MiB unless it is told otherwise."""
    shm = known(facts.host.shm)
    several = isinstance(facts.launch, Unavailable) or facts.launch.local_ranks > 1
    if several and shm.free_mib < SHM_MIB:
        grow = f"mount -o remount,size=32G {shm.mount}"
        inside = "docker run --shm-size 32g --ipc=host ..."
        yield Hit(
            f"/dev/shm has {shm.free_mib} MiB free.",
            (f"{shm.total_mib} MiB in all, {shm.free_mib} MiB free; several ranks want 1 GiB",),
            inside if facts.host.container else grow,
        )


@check(
    "shm-leftovers",
    group="host",
    severity="warning",
    sound="no dead process has left files in /dev/shm",
    breaks="/dev/shm fills up over restarts, until NCCL fails",
    source="https://github.com/llm-d/llm-d/issues/352",
    prevents=("nccl-shm-segment",),
)
def shm_leftovers(facts: Facts) -> Iterator[Hit]:
    """Files of known makers that nobody maps any more."""
    dead = [
        s
        for s in known(facts.host.segments)
        if not s.live and s.age_s > LEFT_AFTER_S and s.path.rpartition("/")[2].startswith(LEFTOVERS)
    ]
    if dead:
        size = sum(segment.mib for segment in dead)
        told = tuple(f"{s.path}: {s.mib:.0f} MiB, {s.age_s / 3600:.1f} h old" for s in dead[:3])
        more = (f"and {len(dead) - 3} more",) if len(dead) > 3 else ()  # noqa: PLR2004
        shown = " ".join(s.path for s in dead[:3]) + (" ..." if more else "")
        yield Hit(
            f"{len(dead)} file{'s' * (len(dead) > 1)} in /dev/shm belong{'s' * (len(dead) == 1)}"
            f" to no process: {size:.0f} MiB.",
            (*told, *more),
            f"rm {shown}",
        )


@check(
    "memlock",
    group="host",
    severity="error",
    sound="memory can be locked for network cards",
    breaks="registering memory with a network card fails: Cannot allocate memory",
    source="https://github.com/NVIDIA/nccl-tests/issues/206",
    prevents=("rdma-memory-registration",),
)
def memlock(facts: Facts) -> Iterator[Hit]:
    """`ulimit -l`, where the launch talks to a network card."""
    limit = known(facts.host.memlock_kib)
    rdma = not isinstance(facts.launch, Unavailable) and facts.launch.uses_rdma
    cards = any(n.startswith("infiniband/") for n in known_or(facts.host.devices, frozenset()))
    bare = isinstance(facts.launch, Unavailable) and cards
    if limit is not None and limit < MEMLOCK_KIB and (rdma or bare):
        yield Hit(
            f"Only {limit} KiB of memory may be locked.",
            (f"ulimit -l: {limit}",),
            "ulimit -l unlimited  # in a container: --ulimit memlock=-1",
            "warning" if bare else None,
        )


@check(
    "nofile",
    group="host",
    severity="note",
    sound="enough files may be open",
    breaks="many ranks and many requests run out of file descriptors",
    source="https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/utils/common.py",
)
def nofile(facts: Facts) -> Iterator[Hit]:
    """The hard limit; the soft one SGLang raises by itself."""
    limit = known(facts.host.nofile)
    if limit is not None and limit < NOFILE:
        say = f"Only {limit} files may be open."
        fix = f"ulimit -Hn {NOFILE}  # in a container: --ulimit nofile={NOFILE}:{NOFILE}"
        yield Hit(say, (f"ulimit -Hn: {limit}",), fix, "warning" if limit < FEW_FILES else None)


@check(
    "cma",
    group="host",
    severity="error",
    sound="the kernel's account of contiguous memory is right",
    breaks="registering memory with a network card fails although memory is free",
    source="https://github.com/MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark/issues/259",
    prevents=("rdma-memory-registration",),
)
def cma(facts: Facts) -> Iterator[Hit]:
    """More free than there is: reserved wrongly by a handover between kernels."""
    total, free = known(facts.host.cma_kib)
    if free > total:
        told = (f"/proc/meminfo: CmaTotal {total} kB, CmaFree {free} kB",)
        yield Hit("The kernel counts more free CMA memory than there is.", told, "reboot")


@check(
    "host-name",
    group="host",
    severity="error",
    sound="the host's name stands for an address that other nodes reach",
    breaks="Gloo connects to the loopback: connectFullMesh failed",
    source="https://github.com/aws-samples/aws-do-eks/pull/50",
    prevents=("gloo-hostname-loopback", "dist-ipv6"),
)
def host_name(facts: Facts) -> Iterator[Hit]:
    """Gloo listens on the address of the host's own name, unless it is told an interface."""
    launch = known(facts.launch)
    if launch.nodes < 2 or launch.env.get("GLOO_SOCKET_IFNAME"):  # noqa: PLR2004
        return
    addresses = known(facts.host.addresses)
    if addresses and all(a.startswith("127.") or a == "::1" for a in addresses):
        yield Hit(
            f"The name {facts.host.name} stands for {addresses[0]}, which no other node reaches.",
            (f"{facts.host.name}: {', '.join(addresses)}", f"--nnodes {launch.nodes}"),
            "export GLOO_SOCKET_IFNAME=eth0 NCCL_SOCKET_IFNAME=eth0  # the nodes' interface",
        )


@check(
    "hicache-memory",
    group="host",
    severity="error",
    sound="the hierarchical cache fits into the host's memory",
    breaks="allocating the host cache fails, or the kernel kills a rank",
    source="https://github.com/sgl-project/sglang/pull/20287",
    prevents=("hicache-host-memory", "hicache-host-overcommit", "host-oom-killed-silent-hang",
              "host-oom-killed"),
)  # fmt: skip
def hicache_memory(facts: Facts) -> Iterator[Hit]:
    """--hicache-size is in GB for each rank; models with a state cache take it twice."""
    launch = known(facts.launch)
    each = launch.number("hicache-size", 0)
    if not launch.on("enable-hierarchical-cache") or not each:
        return
    twice = not isinstance(facts.model, Unavailable) and facts.model.number(*HYBRID) is not None
    wanted = each * GB_IN_MIB * launch.local_ranks * (2 if twice else 1)
    free, limit = known(facts.host.memory_available_mib), known(facts.host.memory_limit_mib)
    room = min(free, limit if limit is not None else free)
    total = known(facts.host.memory_total_mib)
    told = [
        f"{each} GB x {launch.local_ranks} rank{'s' * (launch.local_ranks > 1)}"
        f"{' x 2 pools' if twice else ''} = {wanted / 1024:.0f} GiB",
        f"{free / 1024:.0f} GiB available"
        + (f", limit of the container {limit / 1024:.0f} GiB" if limit is not None else ""),
        "SGLang keeps 10 GiB free",
    ]
    fits = int(max(0.0, room - RESERVE_MIB) / launch.local_ranks / (2 if twice else 1) / GB_IN_MIB)
    if wanted > room - RESERVE_MIB:
        say = f"The hierarchical cache wants {wanted / 1024:.0f} GiB, and {room / 1024:.0f} are there."  # noqa: E501
        yield Hit(say, tuple(told), f"--hicache-size {fits}")
    elif wanted > total / 2:
        yield Hit(
            "The hierarchical cache takes more than half of the host's memory.",
            (*told, "memory that is pinned or shared is limited to half of it on many hosts"),
            f"--hicache-size {int(total / 2 / launch.local_ranks / GB_IN_MIB)}",
            "warning",
        )


@check(
    "numa-binding",
    group="host",
    severity="error",
    sound="ranks may be bound to the memory of their GPU",
    breaks="ranks end before Python starts, without a traceback",
    source="https://github.com/sgl-project/sglang/issues/27368",
    prevents=("numa-bind-blocked",),
)
def numa_binding(facts: Facts) -> Iterator[Hit]:
    """SGLang starts its ranks under a memory policy; containers may forbid that."""
    launch = facts.launch
    env = facts.env if isinstance(launch, Unavailable) else launch.env
    if env.get("SGLANG_NUMA_BIND_V2", "1").lower() in ("0", "false"):
        return
    version = facts.engine_version()
    severity: Severity | None = None
    if version >= ASKS_FIRST:
        severity = "note"
    elif not version or isinstance(launch, Unavailable) or not launch.is_engine:
        severity = "warning"
    refused = known(facts.host.mempolicy)
    off = "export SGLANG_NUMA_BIND_V2=0  # or docker run --cap-add SYS_NICE ..."
    if refused:
        told = (f"set_mempolicy: {refused}",)
        yield Hit("This process may not choose where its memory lies.", told, off, severity)
    allowed = known(facts.host.numa_allowed)
    gpus = known(facts.gpus).devices
    outside: list[Gpu] = [g for g in gpus if known_or(g.numa_node, -1) not in {-1, *allowed}]
    if outside and allowed:
        node = known_or(outside[0].numa_node, -1)
        yield Hit(
            f"GPU {outside[0].index} is near NUMA node {node}, whose memory is not allowed here.",
            (f"Mems_allowed_list: {', '.join(map(str, sorted(allowed)))}",),
            off,
            severity,
        )


@check(
    "threads",
    group="host",
    severity="error",
    sound="threads can be started",
    breaks="the import fails: pthread_create: Operation not permitted",
    source="https://github.com/xorbitsai/inference/issues/1871",
    prevents=("threads-seccomp-blocked",),
)
def threads(facts: Facts) -> Iterator[Hit]:
    """An old container runtime answers clone3 with EPERM, which no C library falls back from."""
    refused = known(facts.host.clone3)
    if refused:
        yield Hit(
            "The container runtime forbids a call that starts threads.",
            (f"clone3: {refused}",),
            "update docker and libseccomp, or docker run --security-opt seccomp=unconfined ...",
        )


@check(
    "proxy",
    group="host",
    severity="error",
    sound="requests to this host pass no proxy",
    breaks="the warm-up request goes to the proxy, and the server ends",
    source="https://github.com/sgl-project/sglang/issues/2193",
    prevents=("warmup-http-failed",),
)
def proxy(facts: Facts) -> Iterator[Hit]:
    """A proxy is set, and the loopback is not excepted."""
    env = facts.env if isinstance(facts.launch, Unavailable) else facts.launch.env
    if not isinstance(facts.launch, Unavailable) and facts.launch.wrapper:
        return  # the container has an environment of its own
    name = next(
        (n for n in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY") if env.get(n)), ""
    )
    excepted = f"{env.get('no_proxy', '')},{env.get('NO_PROXY', '')}"
    words = {word.strip() for word in excepted.split(",")}
    if name and not words & {"127.0.0.1", "127.0.0.0/8", "*"}:
        told = (f"{name} is set", f"no_proxy={env.get('no_proxy', env.get('NO_PROXY', ''))}")
        fix = "export no_proxy=127.0.0.1,localhost,::1 NO_PROXY=127.0.0.1,localhost,::1"
        yield Hit("Requests to this host itself go to a proxy.", told, fix)


@check(
    "ports",
    group="host",
    severity="error",
    sound="the ports of the launch are free",
    breaks="the server cannot listen: address already in use",
    source="https://github.com/sgl-project/sglang/issues/17402",
    prevents=("http-port-in-use", "dist-port-in-use", "pd-bootstrap-port-in-use"),
)
def ports(facts: Facts) -> Iterator[Hit]:
    """HTTP, rendezvous and bootstrap ports that somebody listens on."""
    for busy in known(facts.ports):
        who = f"PID {busy.pid}: {busy.command}" if busy.pid else "a process of another user"
        fix = (
            f"kill {busy.pid}  # or another --port"
            if busy.pid
            else f"ss -ltnp 'sport = :{busy.port}'"
        )
        yield Hit(f"Port {busy.port} is taken.", (who,), fix)


CHECKS = (
    shm_small, shm_leftovers, memlock, nofile, cma, host_name, hicache_memory, numa_binding,
    threads, proxy, ports,
)  # fmt: skip
