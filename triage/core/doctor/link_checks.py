"""Checks of what lies between GPUs: NVLink, switch fabric, multicast, peers, network cards.

In:  Facts. Out: CHECKS.
Not: the GPUs themselves (gpu_checks.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.core.doctor.checks import Hit, check
from triage.core.doctor.facts import Facts
from triage.core.doctor.gpu_checks import numbers, used
from triage.core.machine.facts import Unavailable, known, known_or
from triage.core.machine.gpus import Gpu
from triage.core.machine.packages import release

_FM_GUIDE = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"
_RESTART = "systemctl restart nvidia-fabricmanager && nvidia-smi -q | grep -A4 Fabric"
FATAL_BIND = (2, 29)  # Source: sgl-project/sglang-omni PR 2041: from NCCL 2.29 on it is fatal
HOPPER = (9, 0)
RACK = ("GB200", "GB300", "GH200")
_IMEX = "nvidia-caps-imex-channels/channel0"


def _fabric_ready(gpu: Gpu) -> bool:
    fabric = gpu.fabric
    return not isinstance(fabric, Unavailable) and fabric.state == "completed" and not fabric.status


@check(
    "fabric-not-ready",
    group="links",
    severity="error",
    sound="the NVLink switch fabric is set up",
    breaks="CUDA answers with error 802, or NVLS cannot bind its multicast memory",
    source="https://github.com/NVIDIA/NVSentinel/issues/883",
    prevents=("cuda-802-fabric-manager", "nccl-nvls-multicast-bind", "no-accelerator"),
    hardware=True,
)
def fabric_not_ready(facts: Facts) -> Iterator[Hit]:
    """A GPU with a fabric whose registration has not succeeded."""
    waiting: dict[str, list[int]] = {}
    for gpu in known(facts.gpus).devices:
        fabric = gpu.fabric
        if isinstance(fabric, Unavailable) or fabric.state == "not-supported":
            continue
        # NVML: the status means something only once the state is completed
        if fabric.state != "completed" or fabric.status:
            failed = fabric.status and fabric.state == "completed"
            status = f", status {fabric.status}" if failed else ""
            waiting.setdefault(f"NVML: fabric state {fabric.state}{status}", []).append(gpu.index)
    if waiting:
        told = tuple(f"{say}: {numbers(indexes)}" for say, indexes in waiting.items())
        yield Hit("The switch fabric is not set up for all GPUs.", told, _RESTART)


@check(
    "fabric-manager-missing",
    group="links",
    severity="error",
    sound="the fabric manager runs where there are NVSwitches",
    breaks="CUDA answers with error 802: system not yet initialized",
    source="https://github.com/gpustack/gpustack/issues/4154",
    prevents=("cuda-802-fabric-manager", "no-accelerator"),
    hardware=True,
)
def fabric_manager_missing(facts: Facts) -> Iterator[Hit]:
    """NVSwitch devices without the service that sets them up."""
    gpus, devices = known(facts.gpus), known(facts.host.devices)
    # nvidia-nvswitchctl is there with every driver; a number stands for a switch
    names = (name for name in devices if name.startswith("nvidia-nvswitch"))
    switches = sorted(name for name in names if name[len("nvidia-nvswitch") :].isdigit())
    if not switches or all(map(_fabric_ready, gpus.devices)):
        return
    if not known(facts.host.fabric_manager).running:
        yield Hit(
            "There are NVSwitches, and no fabric manager runs.",
            (f"{len(switches)} of /dev/{switches[0]} and its like", "no process nv-fabricmanager"),
            f"apt install nvidia-fabricmanager-{gpus.driver.split('.')[0]}"
            " && systemctl enable --now nvidia-fabricmanager",
        )


@check(
    "fabric-manager-version",
    group="links",
    severity="error",
    sound="driver and fabric manager are of one version",
    breaks="the fabric manager does not set the fabric up: CUDA error 802",
    source=_FM_GUIDE,
    prevents=("cuda-802-fabric-manager", "no-accelerator"),
    hardware=True,
)
def fabric_manager_version(facts: Facts) -> Iterator[Hit]:
    """The two must agree to the last number."""
    manager, driver = known(facts.host.fabric_manager), known(facts.gpus).driver
    if manager.running and manager.version and driver and manager.version != driver:
        yield Hit(
            "Fabric manager and driver are of different versions.",
            (f"driver {driver}", f"fabric manager {manager.version}"),
            f"apt install nvidia-fabricmanager-{driver.split('.')[0]}={driver}-1"
            " && systemctl restart nvidia-fabricmanager",
        )


@check(
    "fabric-unhealthy",
    group="links",
    severity="error",
    sound="the fabric is healthy and one",
    breaks="collectives over NVLink hang, fail or are slow",
    source=_FM_GUIDE,
    prevents=("hang-nvls-bind", "nccl-nvls-multicast-bind"),
    hardware=True,
)
def fabric_unhealthy(facts: Facts) -> Iterator[Hit]:
    """What NVML says of the fabric's health, and whether all GPUs are in one clique."""
    cliques: dict[int, list[int]] = {}
    for gpu in known(facts.gpus).devices:
        if isinstance(gpu.fabric, Unavailable) or gpu.fabric.state != "completed":
            continue
        cliques.setdefault(gpu.fabric.clique, []).append(gpu.index)
        if gpu.fabric.health in ("unhealthy", "limited"):
            yield Hit(
                f"The fabric of GPU {gpu.index} is {gpu.fabric.health}.",
                (f"NVML: fabric health {gpu.fabric.health}",),
                _RESTART,
                "warning" if gpu.fabric.health == "limited" else None,
            )
    if len(cliques) > 1:
        told = tuple(f"clique {clique}: {numbers(g)}" for clique, g in cliques.items())
        yield Hit("The GPUs are in several cliques of the fabric.", told, _RESTART)


@check(
    "nvlink-down",
    group="links",
    severity="error",
    sound="the GPUs have the same NVLinks up",
    breaks="collectives between these GPUs hang or are slow",
    source="https://docs.nvidia.com/deploy/nvml-api/group__NvLink.html",
    prevents=("hang-nccl-init",),
    hardware=True,
)
def nvlink_down(facts: Facts) -> Iterator[Hit]:
    """Links that are down on some GPUs and up on others; boards that use few links are sound."""
    gpus = known(facts.gpus).devices
    most = max((known_or(gpu.links, 0) for gpu in gpus), default=0)
    for gpu in gpus:
        down = known_or(gpu.links_down, ())
        if down and known_or(gpu.links, 0) < most:
            listed = ", ".join(map(str, down))
            yield Hit(
                f"GPU {gpu.index} has {len(down)} NVLink{'s' * (len(down) > 1)} down.",
                (f"NVML: link {listed} inactive; others have {most} up",),
                f"nvidia-smi nvlink -s -i {gpu.index}  # then --gpu-reset, else reboot",
            )


@check(
    "peer-access",
    group="links",
    severity="warning",
    sound="the GPUs can read each other's memory",
    breaks="custom all-reduce is switched off; NCCL goes through the host, or hangs",
    source="https://github.com/sgl-project/sglang/issues/12496",
    prevents=("custom-allreduce-setup-failed", "hang-nccl-init"),
)
def peer_access(facts: Facts) -> Iterator[Hit]:
    """Pairs without peer access among the GPUs that work together."""
    chosen = used(facts)
    inside = {gpu.index for gpu in chosen}
    blocked = [
        (gpu.index, other, why)
        for gpu in chosen
        for other, why in known_or(gpu.peers, {}).items()
        if why and other in inside and gpu.index < other
    ]
    if blocked and len(chosen) > 1:
        told = tuple(f"GPU {a} and GPU {b}: {why}" for a, b, why in blocked[:3])
        more = (f"and {len(blocked) - 3} more pairs",) if len(blocked) > 3 else ()  # noqa: PLR2004
        yield Hit(
            "Some GPUs cannot read each other's memory.",
            (*told, *more),
            "--disable-custom-all-reduce, and NCCL_P2P_DISABLE=1 if it hangs",
        )


@check(
    "imex-channel",
    group="links",
    severity="error",
    sound="fabric memory can be asked for where the launch wants it",
    breaks="fabric memory is refused: operation not permitted (CUDA error 800)",
    source="https://github.com/microsoft/mscclpp/issues/467",
    prevents=("imex-fabric-not-permitted", "nccl-nvls-multicast-bind", "hang-nccl-init"),
)
def imex_channel(facts: Facts) -> Iterator[Hit]:
    """The device node that allows fabric handles, on rack systems or where it is asked for."""
    launch, gpus = facts.launch, known(facts.gpus)
    wanted = [gpu.name for gpu in gpus.devices if any(rack in gpu.name for rack in RACK)][:1]
    if not isinstance(launch, Unavailable):
        for name in ("USE_MNNVL", "MC_FORCE_MNNVL", "NCCL_MNNVL_ENABLE", "SGLANG_USE_MNNVL"):
            if launch.env.get(name, "0").lower() not in ("0", "off", "false", ""):
                wanted.append(f"{name}={launch.env[name]}")
        wanted += [w for w in ("hybrid-ep", "fabric") if w in launch.text("moe-a2a-backend")]
    if wanted and _IMEX not in known(facts.host.devices):
        yield Hit(
            "Fabric memory is wanted, and this system has no IMEX channel.",
            (f"wanted by {wanted[0]}", f"/dev/{_IMEX} is missing"),
            "systemctl start nvidia-imex"
            " && nvidia-modprobe -i 0:1  # in a container: --device /dev/" + _IMEX,
        )


@check(
    "multicast-device",
    group="links",
    severity="error",
    sound="a container that wants multicast has its device nodes",
    breaks="NCCL finds NVLS and the multicast object is refused: invalid argument",
    source="https://github.com/pie-project/pie/issues/500",
    prevents=("nccl-nvls-multicast-container", "nccl-nvls-multicast-bind"),
)
def multicast_device(facts: Facts) -> Iterator[Hit]:
    """Inside a container without /dev/nvidia-caps*, NVLS is detected and then refused."""
    launch, devices = known(facts.launch), known(facts.host.devices)
    if not (facts.host.container and launch.nvls and launch.tp > 1):
        return
    capable = any(known_or(gpu.capability, (0, 0)) >= HOPPER for gpu in used(facts))
    if capable and not any(name.startswith("nvidia-caps") for name in devices):
        yield Hit(
            "NVLS is on, and this container has no device nodes for multicast.",
            ("no /dev/nvidia-caps* in the container",),
            "NCCL_NVLS_ENABLE=0, or start the container with --device /dev/nvidia-caps",
        )


@check(
    "nvls-without-fabric",
    group="links",
    severity="error",
    sound="NVLS is asked for only where a switch fabric is",
    breaks="NCCL takes multicast for granted and fails or hangs in its initialisation",
    source="https://github.com/NVIDIA/nccl/issues/1197",
    prevents=("nccl-nvls-multicast-bind", "hang-nvls-bind"),
)
def nvls_without_fabric(facts: Facts) -> Iterator[Hit]:
    """--enable-nccl-nvls sets NCCL_NVLS_ENABLE=1, which skips NCCL's own question."""
    launch = known(facts.launch)
    if not launch.nvls or launch.tp < 2:  # noqa: PLR2004
        return
    bare = [gpu.index for gpu in used(facts) if not _fabric_ready(gpu)]
    if not bare:
        return
    nccl = _nccl(facts)
    fatal = nccl >= FATAL_BIND or launch.on("enable-nccl-nvls")
    told = [f"NVML: no completed fabric on {numbers(bare)}"]
    if nccl:
        result = "fatal from 2.29 on" if nccl >= FATAL_BIND else "logged and passed over"
        told.append(f"NCCL {'.'.join(map(str, nccl))}: a failed bind is {result}")
    yield Hit(
        "NVLS is on, and the GPUs have no working switch fabric.",
        tuple(told),
        "NCCL_NVLS_ENABLE=0, without --enable-nccl-nvls",
        None if fatal else "warning",
    )


def _nccl(facts: Facts) -> tuple[int, ...]:
    if isinstance(facts.python, Unavailable):
        return ()
    return release(facts.python.version_of("nvidia-nccl-cu13", "nvidia-nccl-cu12"))


@check(
    "multicast",
    group="links",
    severity="error",
    sound="the GPUs can multicast where the launch wants it",
    breaks="NVLS and symmetric memory cannot be set up",
    source="https://github.com/HazyResearch/ThunderKittens/issues/149",
    prevents=("nccl-nvls-multicast-bind", "flashinfer-allreduce-workspace-failed"),
)
def multicast(facts: Facts) -> Iterator[Hit]:
    """CUDA's attribute; that it is set does not prove that an allocation succeeds."""
    launch, found = known(facts.launch), known(facts.cuda)
    wanted = launch.nvls or launch.on("enable-torch-symm-mem")
    without = [index for index, able in enumerate(found.multicast) if able is False]
    if wanted and launch.tp > 1 and without:
        told = (f"CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED is 0 for {numbers(without)}",)
        fix = "NCCL_NVLS_ENABLE=0, without --enable-nccl-nvls and symmetric memory"
        yield Hit("The launch wants multicast, and the GPUs cannot.", told, fix)


@check(
    "fusion-without-multicast",
    group="links",
    severity="warning",
    sound="all-reduce fusion is asked for only where it can work",
    breaks="its workspace cannot be made: capture fails, or the fusion is switched off",
    source="https://github.com/vllm-project/vllm/pull/37461",
    prevents=("flashinfer-allreduce-workspace-failed", "flashinfer-allreduce-arch-unsupported",
              "flashinfer-allreduce-multinode"),
)  # fmt: skip
def fusion_without_multicast(facts: Facts) -> Iterator[Hit]:
    """FlashInfer's fused all-reduce: SM 9.x and 10.x, NVSwitch, one node."""
    launch = known(facts.launch)
    asked = launch.on("enable-flashinfer-allreduce-fusion")
    asked = asked or launch.text("flashinfer-allreduce-fusion-backend") not in ("", "none")
    if not asked or launch.tp < 2:  # noqa: PLR2004
        return
    off = "--enforce-disable-flashinfer-allreduce-fusion"
    if launch.nodes > 1:
        told = (f"--nnodes {launch.nodes}",)
        yield Hit("All-reduce fusion works inside one node only.", told, off)
    for gpu in used(facts)[:1]:
        major, minor = known(gpu.capability)
        if major not in (9, 10):
            told = (f"compute capability {major}.{minor}; kernels exist for 9 and 10",)
            yield Hit("All-reduce fusion has no kernel for these GPUs.", told, off, "error")
    bare = [gpu.index for gpu in used(facts) if not _fabric_ready(gpu)]
    if bare:
        told = (f"NVML: no completed fabric on {numbers(bare)}",)
        yield Hit("All-reduce fusion needs NVSwitch, and there is none ready.", told, off)


@check(
    "rdma-device",
    group="links",
    severity="warning",
    sound="network cards can be reached where the launch needs them",
    breaks="NVSHMEM cannot open a network card: DeepEP does not start",
    source="https://github.com/sgl-project/sglang/issues/12533",
    prevents=("nvshmem-ibgda-permission", "nvshmem-ibgda-init"),
)
def rdma_device(facts: Facts) -> Iterator[Hit]:
    """DeepEP's low-latency kernels and several nodes need /dev/infiniband."""
    launch, devices = known(facts.launch), known(facts.host.devices)
    if not launch.uses_deepep and not launch.text("disaggregation-ib-device"):
        return
    if not any(name.startswith("infiniband/uverbs") for name in devices):
        needed = launch.nodes > 1 or launch.text("deepep-mode") == "low_latency"
        yield Hit(
            "The launch talks to a network card, and none can be reached.",
            ("no /dev/infiniband/uverbs* here",),
            "docker run --device /dev/infiniband --cap-add IPC_LOCK --ulimit memlock=-1 ...",
            "error" if needed else None,
        )


@check(
    "peermem",
    group="links",
    severity="warning",
    sound="network cards can read GPU memory",
    breaks="NVSHMEM skips its transport and finds no way between the ranks",
    source="https://github.com/sgl-project/sglang/issues/6017",
    prevents=("nvshmem-ibgda-init",),
)
def peermem(facts: Facts) -> Iterator[Hit]:
    """The kernel module nvidia-peermem, with DeepEP on a machine with network cards."""
    launch, devices = known(facts.launch), known(facts.host.devices)
    cards = any(name.startswith("infiniband/uverbs") for name in devices)
    if launch.uses_deepep and cards:
        there = known(facts.host.modules) & {"nvidia_peermem", "nv_peer_mem"}
        if not there:
            yield Hit(
                "The kernel module nvidia-peermem is not loaded.",
                ("/proc/modules has neither nvidia_peermem nor nv_peer_mem",),
                "modprobe nvidia-peermem",
            )


@check(
    "nvshmem-version",
    group="links",
    severity="warning",
    sound="NVSHMEM is not the version that fails on these machines",
    breaks="DeepEP cannot create its address handles: NVSHMEM set-up fails",
    source="https://github.com/NVIDIA/nvshmem/issues/33",
    prevents=("nvshmem-ibgda-init",),
)
def nvshmem_version(facts: Facts) -> Iterator[Hit]:
    """NVSHMEM 3.4.5 leaves a field unset that RoCE cards of B300 machines refuse."""
    launch = known(facts.launch)
    version = known(facts.python).version_of("nvidia-nvshmem-cu13", "nvidia-nvshmem-cu12")
    b300 = any(known_or(gpu.capability, (0, 0)) == (10, 3) for gpu in used(facts))
    if launch.uses_deepep and b300 and release(version) == (3, 4, 5):
        yield Hit(
            "NVSHMEM 3.4.5 does not set up DeepEP on B300 with RoCE.",
            (f"nvidia-nvshmem {version}",),
            "install a newer NVSHMEM, or --moe-a2a-backend none",
        )


CHECKS = (
    fabric_not_ready, fabric_manager_missing, fabric_manager_version, fabric_unhealthy,
    nvlink_down, peer_access, imex_channel, multicast_device, nvls_without_fabric,
    multicast, fusion_without_multicast, rdma_device, peermem, nvshmem_version,
)  # fmt: skip
