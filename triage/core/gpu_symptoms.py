"""What readings of the GPUs under load show of the bottleneck, and what they do not.

In:  samples taken while a steady load ran. Out: a Reading for each regime, each of them
shown, not shown or "cannot tell"; and what a claim of somebody's is worth.
Not: taking samples (triage.machine.sampler).

Utilisation says that some kernel was resident and power is low in every memory-side
regime, so the two alone never show a bottleneck. What separates the regimes is the share
of the DRAM bandwidth and of the tensor pipe, which NVML tells from Hopper on (GPM) and
DCGM elsewhere.

Sources: the field ids of NVML's GPM and the bits of its clocks event reasons, in NVML's API
reference; the thresholds are proposals of ours, but for DRAM 0.5 ("heavy"), tensor and
SM_ACTIVE of compute-bound and SM_ACTIVE of launch-bound (KempnerInstitute/kempnerpulse).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from statistics import fmean, pstdev

from triage.core.records import dataclass
from triage.core.units import format_seconds

STEADY_S = 10.0  # a shorter reading shows nothing of a steady state
DRAM_BOUND, DRAM_HEAVY, DRAM_SOME, DRAM_LITTLE, DRAM_NONE = 0.60, 0.50, 0.20, 0.15, 0.02
TENSOR_BOUND, TENSOR_LOW, TENSOR_LITTLE = 0.50, 0.30, 0.15
SM_HIGH, SM_LOW, SM_IDLE = 0.80, 0.50, 0.02
POWER_NEAR_CAP, POWER_MEMORY, POWER_HUNG = 0.85, (0.25, 0.45), (0.15, 0.25)
NVLINK_BOUND, GRACT_GAPS, CPU_FULL = 0.40, 0.90, 0.95
CLOCK_LOW, THROTTLED_SHARE, IDLE_SHARE = 0.90, 0.10, 0.90
FLAT, FULL, HUNG_S = 0.02, 0.99, 30.0
IDLE_BIT = 0x1
THROTTLES = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
NEEDS_GPM = "DRAM and tensor activity: GPM of NVML on Hopper and later, or DCGM's DRAM_ACTIVE"
BOTTLENECKS = ("hbm", "compute", "kernel", "comms", "launch")


class Answer(StrEnum):
    """What the readings say of one regime."""

    SHOWN = "shown"
    NOT_SHOWN = "not shown"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One reading of one GPU; shares are 0 to 1, None where this GPU does not tell.

    `at` is seconds since the load began; `utilisation` NVML's "GPU utilisation";
    `power_cap_w` the enforced limit; `reasons` the bits of NVML's clocks event reasons;
    `nvlink` both directions together, as a share of the link's peak.
    """

    gpu: int
    at: float
    utilisation: float | None = None
    power_w: float | None = None
    power_cap_w: float | None = None
    sm_clock_mhz: float | None = None
    max_clock_mhz: float | None = None
    reasons: int | None = None
    gr_active: float | None = None
    sm_active: float | None = None
    tensor: float | None = None
    dram: float | None = None
    nvlink: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One regime: the answer, why, and what would tell if nothing does."""

    regime: str
    answer: Answer
    why: str
    needs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """All readings of one load, and how they were taken.

    `missing` says why there are none, "" if there are. `share` is the sampler's own use
    of one core.
    """

    gpus: tuple[str, ...] = ()
    samples: int = 0
    seconds: float = 0.0
    readings: tuple[Reading, ...] = ()
    missing: str = ""
    share: float | None = None

    @property
    def bottleneck(self) -> str:
        """The regime that is shown to limit, or "not shown" with what would show it."""
        found = [
            r.regime for r in self.readings if r.answer is Answer.SHOWN and r.regime in BOTTLENECKS
        ]
        if found:
            return " and ".join(found)
        needs = next((r.needs for r in self.readings if r.needs), "")
        why = self.missing or (f"would need {needs}" if needs else "no regime's signature is met")
        return f"not shown ({why})"


class _Mean:
    """Means over all samples of all GPUs; None where no sample tells."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        times = [s.at for s in samples]
        self.seconds = max(times) - min(times) if times else 0.0
        self.utilisation = self.of(lambda s: s.utilisation)
        self.power = self.of(_power_share)
        self.clock = self.of(_clock_share)
        self.gr_active = self.of(lambda s: s.gr_active)
        self.sm = self.of(lambda s: s.sm_active)
        self.tensor = self.of(lambda s: s.tensor)
        self.dram = self.of(lambda s: s.dram)
        self.nvlink = self.of(lambda s: s.nvlink)

    def of(self, value: Callable[[Sample], float | None]) -> float | None:
        """The mean of what the samples tell."""
        told = [found for sample in self.samples if (found := value(sample)) is not None]
        return fmean(told) if told else None


def read_symptoms(
    samples: Sequence[Sample], *, tokens: int | None = None, busiest_core: float | None = None
) -> tuple[Reading, ...]:
    """One Reading for each regime of the table, in its order.

    Args:
        samples: All GPUs of the launch, taken while the load was steady.
        tokens: Generated meanwhile, None if nobody counted.
        busiest_core: Share of one core that the busiest of the server's processes used.
    """
    mean = _Mean(samples)
    if mean.seconds < STEADY_S:
        why = (
            f"{len(samples)} samples over {format_seconds(mean.seconds)} are no steady state"
            if samples
            else "no GPU was read"
        )
        need = f"readings of a steady load over {STEADY_S:.0f} s or more"
        regimes = (*BOTTLENECKS, "power-or-thermal", "idle", "hung")
        return tuple(_cannot(regime, why, need) for regime in regimes)
    return (
        _hbm(mean),
        _compute(mean),
        _kernel(mean),
        _comms(mean),
        _launch(mean, busiest_core),
        _throttled(mean),
        _idle(mean),
        _hung(mean, tokens),
    )


def judge_claim(regime: str, readings: Iterable[Reading]) -> Reading:
    """What a claim that this regime limits is worth: a claim that nothing shows is not shown.

    "Cannot tell" of the table becomes "not shown" here: who claims has to show.
    """
    for reading in readings:
        if reading.regime == regime:
            if reading.answer is Answer.CANNOT_TELL:
                return Reading(
                    regime=regime,
                    answer=Answer.NOT_SHOWN,
                    why=reading.why,
                    needs=reading.needs,
                )
            return reading
    return Reading(
        regime=regime, answer=Answer.NOT_SHOWN, why="nothing was read of it", needs=NEEDS_GPM
    )


def _hbm(mean: _Mean) -> Reading:
    name = "hbm"
    if mean.dram is None or mean.tensor is None:
        return _cannot(name, _coarse(mean), NEEDS_GPM)
    seen = f"DRAM {mean.dram:.0%} of its bandwidth, tensor pipe {mean.tensor:.0%}"
    if mean.dram >= DRAM_BOUND and mean.tensor < TENSOR_LOW:
        return _shown(name, seen)
    heavy = "; heavy use, and not at its limit" if mean.dram >= DRAM_HEAVY else ""
    return _not(name, f"{seen}{heavy}")


def _compute(mean: _Mean) -> Reading:
    name = "compute"
    if mean.tensor is None or mean.sm is None:
        return _cannot(name, _coarse(mean), NEEDS_GPM)
    seen = f"tensor pipe {mean.tensor:.0%}, SMs {mean.sm:.0%}"
    if mean.tensor < TENSOR_BOUND or mean.sm < SM_HIGH:
        return _not(name, seen)
    if mean.power is None:
        return _cannot(name, f"{seen}, and the power is not known", "power and its cap")
    seen = f"{seen}, power {mean.power:.0%} of the cap"
    return _shown(name, seen) if mean.power >= POWER_NEAR_CAP else _not(name, seen)


def _kernel(mean: _Mean) -> Reading:
    """A kernel on the memory side that is slower than the memory."""
    name = "kernel"
    if mean.dram is None or mean.tensor is None or mean.sm is None:
        return _cannot(name, _coarse(mean), NEEDS_GPM)
    seen = f"SMs {mean.sm:.0%}, DRAM {mean.dram:.0%}, tensor pipe {mean.tensor:.0%}"
    fits = mean.sm >= SM_HIGH and DRAM_SOME <= mean.dram < DRAM_HEAVY and mean.tensor < TENSOR_LOW
    if not fits:
        return _not(name, seen)
    if mean.power is None:
        return _cannot(name, f"{seen}, and the power is not known", "power and its cap")
    low, high = POWER_MEMORY
    seen = f"{seen}, power {mean.power:.0%} of the cap"
    return _shown(name, seen) if low <= mean.power <= high else _not(name, seen)


def _comms(mean: _Mean) -> Reading:
    name = "comms"
    if mean.nvlink is not None and mean.nvlink >= NVLINK_BOUND:
        return _shown(name, f"NVLink at {mean.nvlink:.0%} of its peak")
    if mean.sm is None or mean.dram is None or mean.tensor is None:
        return _cannot(name, _coarse(mean), f"NVLink throughput, or {NEEDS_GPM}")
    seen = f"SMs {mean.sm:.0%}, DRAM {mean.dram:.0%}, tensor pipe {mean.tensor:.0%}"
    spins = mean.sm >= SM_HIGH and mean.dram < DRAM_LITTLE and mean.tensor < TENSOR_LITTLE
    if spins:
        return _shown(name, f"{seen}: kernels that wait for other GPUs look like that")
    if mean.nvlink is None:
        return _not(name, f"{seen}; NVLink was not read")
    return _not(name, f"{seen}, NVLink at {mean.nvlink:.0%} of its peak")


def _launch(mean: _Mean, busiest_core: float | None) -> Reading:
    """Launching kernels, or the CPU, is what the GPU waits for."""
    name = "launch"
    if mean.sm is None and mean.gr_active is None:
        return _cannot(name, _coarse(mean), "graphics-engine or SM activity (GPM), and the CPU")
    gaps = (mean.gr_active is not None and mean.gr_active < GRACT_GAPS) or (
        mean.sm is not None and mean.sm < SM_LOW
    )
    told = [
        f"{what} {share:.0%}"
        for what, share in (("engine active", mean.gr_active), ("SMs", mean.sm))
        if share is not None
    ]
    seen = ", ".join(told)
    if not gaps:
        return _not(name, seen)
    if busiest_core is None:
        return _cannot(name, f"{seen}, and the CPU was not read", "the busiest process's core")
    seen = f"{seen}, the busiest process at {busiest_core:.0%} of a core"
    return _shown(name, seen) if busiest_core >= CPU_FULL else _not(name, seen)


def _throttled(mean: _Mean) -> Reading:
    name = "power-or-thermal"
    known = [s for s in mean.samples if s.reasons is not None]
    if not known and mean.clock is None:
        return _cannot(name, "neither clocks nor their event reasons were read", "NVML's clocks")
    for bit, what in THROTTLES.items():
        share = sum(bool((s.reasons or 0) & bit) for s in known) / len(known) if known else 0.0
        if share >= THROTTLED_SHARE:
            return _shown(name, f"{what} in {share:.0%} of the samples")
    working = [
        clock
        for s in mean.samples
        if not (s.reasons or 0) & IDLE_BIT and (clock := _clock_share(s)) is not None
    ]
    if working and fmean(working) < CLOCK_LOW:
        return _shown(name, f"SM clock at {fmean(working):.0%} of its highest")
    if not known:
        return _cannot(name, "the clocks are high; their event reasons were not read", "NVML")
    return _not(name, "no slowdown in the clocks event reasons")


def _idle(mean: _Mean) -> Reading:
    name = "idle"
    known = [s for s in mean.samples if s.reasons is not None]
    if mean.sm is not None:
        seen = f"SMs {mean.sm:.1%}"
        return _shown(name, seen) if mean.sm < SM_IDLE else _not(name, seen)
    if not known:
        return _cannot(name, _coarse(mean), "SM activity (GPM) or the clocks event reasons")
    share = sum(bool((s.reasons or 0) & IDLE_BIT) for s in known) / len(known)
    seen = f"the idle bit in {share:.0%} of the samples"
    return _shown(name, seen) if share >= IDLE_SHARE else _not(name, seen)


def _hung(mean: _Mean, tokens: int | None) -> Reading:
    """A collective that never ends: busy, at little and even power, without a token."""
    name = "hung"
    if tokens:
        return _not(name, f"{tokens} tokens were generated meanwhile")
    look = "py-spy dumps of the ranks, or NCCL RAS"
    if tokens is None:
        return _cannot(name, "nobody counted tokens meanwhile", look)
    if mean.seconds < HUNG_S:
        return _cannot(name, f"no token for {format_seconds(mean.seconds)} only", look)
    if mean.utilisation is None or mean.power is None:
        return _cannot(name, "no token, and neither utilisation nor power was read", look)
    low, high = POWER_HUNG
    powers = [p for s in mean.samples if (p := _power_share(s)) is not None]
    even = pstdev(powers) <= FLAT * fmean(powers) if fmean(powers) else True
    seen = f"no token, utilisation {mean.utilisation:.0%}, power {mean.power:.0%} of the cap"
    if mean.utilisation < FULL or not low <= mean.power <= high or not even:
        return _not(name, f"{seen}{'' if even else ', not even'}")
    if mean.dram is None:
        return _cannot(name, f"{seen} and even; DRAM was not read", look)
    seen = f"{seen} and even, DRAM {mean.dram:.0%}"
    return _shown(name, seen) if mean.dram < DRAM_NONE else _not(name, seen)


def _coarse(mean: _Mean) -> str:
    """What the coarse counters say, and that it separates nothing."""
    told = [
        f"{what} {share:.0%}{of}"
        for what, share, of in (
            ("utilisation", mean.utilisation, ""),
            ("power", mean.power, " of the cap"),
        )
        if share is not None
    ]
    if not told:
        return "nothing that separates the regimes was read"
    return f"{' and '.join(told)} fit every regime: they separate nothing"


def _power_share(sample: Sample) -> float | None:
    return sample.power_w / sample.power_cap_w if sample.power_w and sample.power_cap_w else None


def _clock_share(sample: Sample) -> float | None:
    if not sample.sm_clock_mhz or not sample.max_clock_mhz:
        return None
    return sample.sm_clock_mhz / sample.max_clock_mhz


def _shown(regime: str, why: str) -> Reading:
    return Reading(regime=regime, answer=Answer.SHOWN, why=why)


def _not(regime: str, why: str) -> Reading:
    return Reading(regime=regime, answer=Answer.NOT_SHOWN, why=why)


def _cannot(regime: str, why: str, needs: str) -> Reading:
    return Reading(regime=regime, answer=Answer.CANNOT_TELL, why=why, needs=needs)
