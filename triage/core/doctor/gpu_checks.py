"""Checks of the GPUs themselves: present, healthy, free, equal, allowed.

In:  Facts. Out: CHECKS.
Not: how they are linked (link_checks.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from triage.core.doctor.checks import Hit, Severity, check
from triage.core.doctor.facts import Facts
from triage.core.machine.facts import Unavailable, known, known_or
from triage.core.machine.gpus import DRIVER_MISMATCH, DRIVER_SILENT, Gpu, Gpus, Reading

# Source: NVIDIA, "Xid Errors" (docs.nvidia.com/deploy/xid-errors): the application is not to
# blame for these. Left out: 13, 31, 43, 45 and others that a faulty kernel of the engine causes.
FATAL_XIDS = {
    48: "uncorrectable memory error",
    62: "internal micro-controller halt",
    64: "row remapping failed",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    95: "uncontained memory error",
    119: "the GPU's system processor does not answer",
    120: "the GPU's system processor has failed",
    140: "unrecovered memory error",
    145: "NVLink error",
    149: "NVLink error",
}
OLD_S = 24 * 3600.0  # what happened before may have been mended by a reset since
HELD_MIB = 1024  # what a driver, a monitor or a display may hold without harm
UNEQUAL = 0.9  # Source: SGLang 0.5.23, distributed/bootstrap.py: 90 % of the best rank
HALF = 0.5
OLDEST = (8, 0)  # Source: the kernels of sglang-kernel are built for sm_80 and later
_XID_PAGE = "https://docs.nvidia.com/deploy/xid-errors/index.html"


def used(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs that a launch would use, in its order; all if no launch is asked."""
    gpus = known(facts.gpus)
    if isinstance(facts.launch, Unavailable):
        return gpus.devices
    chosen = visible(facts, gpus)
    first = facts.launch.number("base-gpu-id", 0)
    return chosen[first : first + facts.launch.local_ranks]


def visible(facts: Facts, gpus: Gpus) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES lets through, in its order."""
    listed = _listed(facts)
    if listed is None:
        return gpus.devices
    by_name = {str(gpu.index): gpu for gpu in gpus.devices}
    by_name |= {known_or(gpu.uuid, f"?{gpu.index}"): gpu for gpu in gpus.devices}
    found = []
    for word in listed:
        if word not in by_name:
            break  # CUDA hides everything from the first wrong one on
        found.append(by_name[word])
    return tuple(found)


def _listed(facts: Facts) -> list[str] | None:
    """The entries of CUDA_VISIBLE_DEVICES; None if it is not set or names instances of MIG."""
    env = facts.env if isinstance(facts.launch, Unavailable) else facts.launch.env
    boxed = not isinstance(facts.launch, Unavailable) and bool(facts.launch.wrapper)
    text = None if boxed else env.get("CUDA_VISIBLE_DEVICES")
    if text is None or text.startswith("MIG-"):
        return None
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(items: Sequence[object]) -> str:
    """Indexes as a reader takes them in: GPU 3; GPUs 0, 1, 5."""
    listed = ", ".join(map(str, items))
    return f"GPU {listed}" if len(items) == 1 else f"GPUs {listed}"


@check(
    "driver",
    group="gpus",
    severity="error",
    sound="the driver answers, and its parts are of one version",
    breaks="nothing that uses CUDA can start",
    source="https://docs.nvidia.com/deploy/nvml-api/",
    prevents=("no-accelerator",),
    hardware=True,
)
def driver(facts: Facts) -> Iterator[Hit]:
    """The driver was updated while its old module stayed loaded, or it hangs."""
    gpus = facts.gpus
    if isinstance(gpus, Unavailable) and gpus.reason == DRIVER_MISMATCH:
        yield Hit("The NVIDIA driver was updated without a restart.", (gpus.reason,), gpus.fix)
    elif isinstance(gpus, Unavailable) and gpus.reason.startswith(DRIVER_SILENT):
        told = (gpus.reason,)
        yield Hit("The NVIDIA driver hangs.", told, "dmesg | grep -i -e xid -e nvrm  # then reboot")


@check(
    "cuda-start",
    group="gpus",
    severity="error",
    sound="CUDA starts",
    breaks="the engine finds no accelerator, and says so without this reason",
    source="https://github.com/sgl-project/sglang/issues/27487",
    prevents=("cuda-802-fabric-manager", "cuda-804-forward-compat", "no-accelerator"),
    hardware=True,
)
def cuda_start(facts: Facts) -> Iterator[Hit]:
    """What cuInit answers: NVML may work while CUDA does not."""
    known(facts.gpus)
    found = known(facts.cuda)
    if not found.code:
        return
    fixes = {
        802: "systemctl restart nvidia-fabricmanager  # of exactly the driver's version",
        803: "reboot  # the driver was updated while its old module stayed loaded",
        804: "ldconfig -p | grep libcuda.so.1  # and move the compat copy away",
        -1: "dmesg | grep -i -e xid -e nvrm",
    }
    told = (f"cuInit: {found.code} {found.name}" if found.code > 0 else f"cuInit: {found.name}",)
    yield Hit("CUDA does not start.", told, fixes.get(found.code, "nvidia-smi"))


@check(
    "no-gpu",
    group="gpus",
    severity="error",
    sound="there are GPUs",
    breaks="the engine ends before it has read a weight",
    source="https://github.com/sgl-project/sglang/issues/7547",
    prevents=("no-accelerator",),
)
def no_gpu(facts: Facts) -> Iterator[Hit]:
    """The command wants a GPU and there is none."""
    if not known(facts.launch).on_gpu:
        return
    gpus = facts.gpus
    inside = "docker run --gpus all ..." if facts.host.container else "nvidia-smi"
    if isinstance(gpus, Unavailable) and not gpus.reason.startswith(
        (DRIVER_MISMATCH, DRIVER_SILENT)
    ):
        yield Hit("The command wants a GPU, and none can be seen.", (gpus.reason,), inside)
    elif not isinstance(gpus, Unavailable) and not gpus.devices and not gpus.lost:
        say = f"driver {gpus.driver} counts no GPU"
        yield Hit("The command wants a GPU, and the driver has none.", (say,), inside)


@check(
    "gpu-lost",
    group="gpus",
    severity="error",
    sound="every GPU answers",
    breaks="every launch that touches it, whatever its flags",
    source=_XID_PAGE,
    hardware=True,
)
def gpu_lost(facts: Facts) -> Iterator[Hit]:
    """The driver counts a GPU that does not answer."""
    for gpu in known(facts.gpus).lost:
        yield Hit(f"GPU {gpu.index} does not answer.", (gpu.reason,), "reboot")


@check(
    "xid",
    group="gpus",
    severity="error",
    sound="the kernel log has no hardware error of a GPU",
    breaks="launches fail or hang on that GPU, and differently each time",
    source=_XID_PAGE,
    prevents=("gpu-hardware-ecc",),
    hardware=True,
)
def xid(facts: Facts) -> Iterator[Hit]:
    """The driver wrote an Xid that no application causes."""
    known(facts.gpus)
    fatal = [x for x in known(facts.host.xids) if x.code in FATAL_XIDS]
    for device in dict.fromkeys(x.device for x in fatal):
        own = [x for x in fatal if x.device == device]
        old = all(known_or(x.age_s, 0.0) > OLD_S for x in own)
        named = ", ".join(f"{c} ({FATAL_XIDS[c]})" for c in dict.fromkeys(x.code for x in own))
        yield Hit(
            f"The kernel log has Xid {named} for the GPU at {device}.",
            tuple(x.text for x in own[-2:]),
            f"nvidia-smi -i {device} --gpu-reset  # else reboot; if it comes back, replace it",
            "warning" if old else None,
        )


@check(
    "ecc",
    group="gpus",
    severity="error",
    sound="no GPU has an uncorrected memory error",
    breaks="the first kernel that reads that memory ends the process",
    source="https://github.com/vllm-project/vllm/issues/5222",
    prevents=("gpu-hardware-ecc",),
    hardware=True,
)
def ecc(facts: Facts) -> Iterator[Hit]:
    """Uncorrected errors since the driver was loaded, or rows that could not be replaced."""
    for gpu in known(facts.gpus).devices:
        count = known_or(gpu.ecc_uncorrected, 0)
        reset = f"nvidia-smi -i {gpu.index} --gpu-reset"
        if count:
            say = f"GPU {gpu.index} has {count} uncorrected memory error{'s' * (count > 1)}."
            yield Hit(say, (f"NVML: uncorrected ECC errors (volatile) {count}",), reset)
        if known_or(gpu.remap_failed, usual=False):
            say = f"GPU {gpu.index} could not replace a faulty row of its memory."
            yield Hit(say, ("NVML: row remapping failed",), "replace the GPU")
        elif known_or(gpu.remap_pending, usual=False):
            say = f"GPU {gpu.index} waits for a reset to replace a faulty row of its memory."
            yield Hit(say, ("NVML: row remapping pending",), reset, "warning")


@check(
    "gpu-count",
    group="gpus",
    severity="error",
    sound="there are as many GPUs as ranks",
    breaks="ranks without a GPU end with an invalid device ordinal",
    source="https://github.com/sgl-project/sglang/issues/972",
    prevents=("cuda-invalid-device-ordinal",),
)
def gpu_count(facts: Facts) -> Iterator[Hit]:
    """The ranks of this node, from the first GPU on, against those that it may see."""
    launch, gpus = known(facts.launch), known(facts.gpus)
    if not launch.on_gpu:
        return
    first, there = launch.number("base-gpu-id", 0), len(visible(facts, gpus))
    need = launch.local_ranks
    if first + need > there:
        told = [f"{len(gpus.devices)} GPUs answer"]
        if (shown := launch.env.get("CUDA_VISIBLE_DEVICES")) is not None:
            told.append(f"CUDA_VISIBLE_DEVICES={shown}")
        after = f" from --base-gpu-id {first} on" if first else ""
        yield Hit(
            f"The command needs {need} GPU{'s' * (need > 1)}{after}, and sees {there}.",
            tuple(told),
            "lower --tp-size, --pp-size or --dp-size, or let the process see more GPUs",
        )


@check(
    "visible-devices",
    group="gpus",
    severity="error",
    sound="CUDA_VISIBLE_DEVICES names each GPU once, in order",
    breaks="two ranks get one GPU, or a rank gets none",
    source="https://github.com/sgl-project/sglang/issues/6455",
    prevents=("cuda-invalid-device-ordinal", "nccl-duplicate-gpu"),
)
def visible_devices(facts: Facts) -> Iterator[Hit]:
    """A GPU that is named twice or that does not exist; a changed order is worth a warning."""
    listed = _listed(facts)
    if not listed:
        return
    shown = (f"CUDA_VISIBLE_DEVICES={','.join(listed)}",)
    once = list(dict.fromkeys(listed))
    if once != listed:
        fix = f"export CUDA_VISIBLE_DEVICES={','.join(once)}"
        yield Hit("CUDA_VISIBLE_DEVICES names a GPU twice.", shown, fix)
    gpus = facts.gpus
    if not isinstance(gpus, Unavailable):
        there = {str(gpu.index) for gpu in gpus.devices}
        wrong = [word for word in once if word.isdigit() and word not in there]
        if wrong:
            fix = f"export CUDA_VISIBLE_DEVICES={','.join(sorted(there, key=int))}"
            yield Hit(
                f"CUDA_VISIBLE_DEVICES names {numbers(wrong)}, which is not there.", shown, fix
            )
    plain = [int(word) for word in once if word.isdigit()]
    if plain != sorted(plain):
        fix = f"export CUDA_VISIBLE_DEVICES={','.join(map(str, sorted(plain)))}"
        yield Hit("CUDA_VISIBLE_DEVICES changes the order of the GPUs.", shown, fix, "warning")


@check(
    "gpu-memory-held",
    group="gpus",
    severity="warning",
    sound="no process holds memory of the GPUs",
    breaks="weights or the KV cache do not fit, or the ranks are unequal",
    source="https://github.com/sgl-project/sglang/issues/1463",
    prevents=("gpu-occupied", "weight-oom", "kv-pool-no-room", "gpu-memory-unbalanced",
              "vllm-startup-free-memory", "device-busy"),
)  # fmt: skip
def gpu_memory_held(facts: Facts) -> Iterator[Hit]:
    """Memory in use before the launch, and by whom; an error where the launch wants it."""
    gpus = known(facts.gpus)
    readings = {reading.index: reading for reading in gpus.readings}
    for gpu in used(facts):
        reading = readings[gpu.index]
        taken = known(reading.memory_used_mib)
        if taken < HELD_MIB:
            continue
        holders = [h for h in gpus.holders if h.index == gpu.index]
        told = [f"{taken} MiB of {known_or(gpu.memory_total_mib, 0)} MiB are in use"]
        told += [
            f"PID {h.pid} holds {known_or(h.memory_mib, 0)} MiB: {h.command or 'not ours to see'}"
            for h in holders
        ]
        if not holders:
            told.append("by no process that can be seen: another container, or one that died")
        pids = " ".join(str(h.pid) for h in holders)
        fix = f"kill {pids}  # if it is yours" if pids else f"fuser -v /dev/nvidia{gpu.index}"
        say = f"GPU {gpu.index} is in use."
        yield Hit(say, tuple(told), fix, "error" if _too_little(facts, gpu, reading) else None)


def _too_little(facts: Facts, gpu: Gpu, reading: Reading) -> bool:
    """Whether less is free than the launch asks for; half of the memory where it does not say."""
    share = HALF
    if not isinstance(facts.launch, Unavailable):
        text = facts.launch.text("mem-fraction-static") or str(HALF)
        share = float(text) if text.replace(".", "", 1).isdigit() else HALF
    total = known_or(gpu.memory_total_mib, 0)
    return known_or(reading.memory_free_mib, total) < share * total


@check(
    "gpu-memory-unequal",
    group="gpus",
    severity="warning",
    sound="the GPUs have equally much free memory",
    breaks="tensor parallelism refuses to start, or one rank runs out of memory",
    source="https://github.com/sgl-project/sglang/issues/1533",
    prevents=("gpu-memory-unbalanced",),
)
def gpu_memory_unequal(facts: Facts) -> Iterator[Hit]:
    """SGLang refuses a rank with less than 90 % of the free memory of the best."""
    free = {r.index: known_or(r.memory_free_mib, -1) for r in known(facts.gpus).readings}
    chosen = {gpu.index: free[gpu.index] for gpu in used(facts) if free[gpu.index] >= 0}
    best = max(chosen.values(), default=0)
    short = [index for index, mib in chosen.items() if mib < UNEQUAL * best]
    if short:
        told = tuple(f"GPU {index}: {mib / 1024:.2f} GiB free" for index, mib in chosen.items())
        severity: Severity = "error"
        if isinstance(facts.launch, Unavailable) or not _balance_is_checked(facts.launch.env):
            severity = "warning"
        yield Hit(
            f"{numbers(short)} {'has' if len(short) == 1 else 'have'} less free memory than the"
            f" others: {min(chosen.values()) / 1024:.2f} against {best / 1024:.2f} GiB.",
            told,
            "nvidia-smi --query-compute-apps=gpu_bus_id,pid,used_memory --format=csv",
            severity,
        )


def _balance_is_checked(env: Mapping[str, str]) -> bool:
    """SGLang's own refusal can be switched off."""
    return env.get("SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK", "1").lower() not in ("0", "false")


@check(
    "gpus-differ",
    group="gpus",
    severity="warning",
    sound="the GPUs are of one kind",
    breaks="the smallest one limits all, and kernels are chosen for the first",
    source="https://github.com/sgl-project/sglang/issues/1533",
    prevents=("gpu-memory-unbalanced",),
)
def gpus_differ(facts: Facts) -> Iterator[Hit]:
    """Several models of GPU in one launch."""
    kinds: dict[str, list[int]] = {}
    for gpu in used(facts):
        kinds.setdefault(gpu.name, []).append(gpu.index)
    if len(kinds) > 1:
        told = tuple(f"{name}: {numbers(indexes)}" for name, indexes in kinds.items())
        most = max(kinds.values(), key=len)
        fix = f"export CUDA_VISIBLE_DEVICES={','.join(map(str, most))}"
        yield Hit("The GPUs are not of one kind.", told, fix)


@check(
    "mig",
    group="gpus",
    severity="warning",
    sound="no GPU is cut into instances",
    breaks="ranks on instances of MIG cannot reach each other's memory",
    source="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
    prevents=("no-accelerator",),
)
def mig(facts: Facts) -> Iterator[Hit]:
    """MIG is on; an error as soon as there is more than one rank."""
    on = [gpu.index for gpu in known(facts.gpus).devices if known_or(gpu.mig, usual=False)]
    if on:
        several = not isinstance(facts.launch, Unavailable) and facts.launch.tp > 1
        yield Hit(
            f"MIG is on for {numbers(on)}.",
            ("NVML: MIG mode enabled",),
            f"nvidia-smi -i {','.join(map(str, on))} -mig 0",
            "error" if several else None,
        )


@check(
    "compute-mode",
    group="gpus",
    severity="error",
    sound="any process may use the GPUs",
    breaks="the device is busy or unavailable to the second process",
    source="https://github.com/hkust-nlp/simpleRL-reason/issues/33",
    prevents=("device-busy",),
)
def compute_mode(facts: Facts) -> Iterator[Hit]:
    """The GPU admits one process only, or none."""
    modes: dict[str, list[int]] = {}
    for gpu in known(facts.gpus).devices:
        modes.setdefault(known_or(gpu.compute_mode, "shared"), []).append(gpu.index)
    for mode, indexes in modes.items():
        if mode != "shared":
            are = "is" if len(indexes) == 1 else "are"
            yield Hit(
                f"{numbers(indexes)} {are} in compute mode {mode}.",
                (f"NVML: compute mode {mode}",),
                f"nvidia-smi -i {','.join(map(str, indexes))} -c DEFAULT",
            )


@check(
    "clocks-held-down",
    group="gpus",
    severity="warning",
    sound="no GPU is slowed down by heat or power supply",
    breaks="one slow GPU slows every rank, and start-up times out sooner",
    source="https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
)
def clocks_held_down(facts: Facts) -> Iterator[Hit]:
    """Event reasons that a healthy idle machine does not have."""
    bad = {"hardware-slowdown", "thermal-slowdown", "hardware-thermal-slowdown", "power-brake"}
    for reading in known(facts.gpus).readings:
        reasons = sorted(bad & set(known_or(reading.reasons, ())))
        if reasons:
            yield Hit(
                f"GPU {reading.index} is held down: {', '.join(reasons)}.",
                (f"{known_or(reading.temperature_c, 0)} °C,"
                 f" SM clock {known_or(reading.sm_clock_mhz, 0)} MHz",),
                f"nvidia-smi -i {reading.index} -q -d PERFORMANCE,TEMPERATURE,POWER",
            )  # fmt: skip


@check(
    "vgpu",
    group="gpus",
    severity="warning",
    sound="the GPUs are whole",
    breaks="NCCL ends with a segmentation fault where a virtual GPU lacks peer access",
    source="https://github.com/sgl-project/sglang/issues/3451",
    prevents=("segv-in-nccl-init",),
)
def vgpu(facts: Facts) -> Iterator[Hit]:
    """A share of a GPU, by NVML or by a name such as A40-48Q."""
    shares = [g for g in known(facts.gpus).devices if _is_a_share(g)]
    if shares:
        several = not isinstance(facts.launch, Unavailable) and facts.launch.tp > 1
        yield Hit(
            f"{numbers([g.index for g in shares])}: shares of a GPU, {shares[0].name}.",
            (f"NVML: {shares[0].name}",),
            "use a GPU that is passed through whole, or --tp-size 1",
            "error" if several else None,
        )


def _is_a_share(gpu: Gpu) -> bool:
    profile = gpu.name.split()[-1].rpartition("-")[2] if gpu.name.strip() else ""
    named = profile[:-1].isdigit() and profile[-1:] in "QCAB"
    return known_or(gpu.virtual, "") == "vgpu" or named


@check(
    "gpu-too-old",
    group="gpus",
    severity="error",
    sound="the engine's kernels are built for these GPUs",
    breaks="the first kernel has no image for the device",
    source="https://github.com/sgl-project/sglang/issues/748",
    prevents=("sgl-kernel-no-kernel-image",),
)
def gpu_too_old(facts: Facts) -> Iterator[Hit]:
    """Compute capability below what the wheels are built for."""
    old = [gpu for gpu in used(facts) if known(gpu.capability) < OLDEST]
    if old:
        major, minor = known(old[0].capability)
        yield Hit(
            f"{numbers([gpu.index for gpu in old])}, {old[0].name}: too old for the kernels.",
            (f"compute capability {major}.{minor}; 8.0 is the oldest",),
            "use an Ampere GPU or a newer one",
        )


CHECKS = (
    driver, cuda_start, no_gpu, gpu_lost, xid, ecc, gpu_count, visible_devices, gpu_memory_held,
    gpu_memory_unequal, gpus_differ, mig, compute_mode, clocks_held_down, vgpu, gpu_too_old,
)  # fmt: skip
