"""What one launch left as evidence beside its log, and what is not available of it.

In:  nothing. Out: Evidence and its parts.
Not: collecting it (triage.session.evidence), or what it proves (log/outside.py).
"""

from __future__ import annotations

from triage.core.records import dataclass

# In the order in which they are listed.
KINDS = ("log", "exits", "stacks", "gpus", "kernel", "environment", "server-info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One piece of evidence: its file, a line about it, or why there is none.

    `file` lies beside the log, or in the session's folder if it begins with `../`.
    """

    kind: str
    file: str = ""
    say: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A process that held memory of a GPU meanwhile."""

    pid: int
    name: str = ""
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """What one GPU showed during a launch; None where it does not tell.

    `slowed` holds each reason for a lower clock, with its seconds; `links_mib_s` the most over
    its links in a second, both directions; `ecc_errors` the uncorrected ones that were new;
    `xids` codes of errors that the driver reported meanwhile. `tenants` are processes of the
    launch, `foreign` others. `lost` says since when it does not answer.
    """

    index: int
    name: str = ""
    before_mib: int | None = None
    peak_mib: int | None = None
    peak_phase: str = ""
    peak_s: float = 0.0
    power_w: int | None = None
    power_limit_w: int | None = None
    slowed: tuple[tuple[str, float], ...] = ()
    links_mib_s: int | None = None
    ecc_errors: int | None = None
    xids: tuple[int, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    foreign: tuple[Tenant, ...] = ()
    lost: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A package, variable or fact of the environment that is not as it was; None: not there."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All of one launch. `kernel` are the kernel's lines, `share` of a core that reading took."""

    pieces: tuple[Piece, ...] = ()
    gpus: tuple[GpuUse, ...] = ()
    share: float = 0.0
    kernel: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    simulated: bool = False


def gpu_lines(uses: tuple[GpuUse, ...]) -> tuple[str, ...]:
    """What the GPUs showed, a sentence for each thing; GPUs that showed the same together."""
    said = []
    peaks = [use for use in uses if use.peak_mib is not None]
    if peaks:
        most = max(peaks, key=lambda use: use.peak_mib or 0)
        least = min(peaks, key=lambda use: use.peak_mib or 0)
        phase = f" in {most.peak_phase}" if most.peak_phase not in ("", "unknown") else ""
        spread = (
            ""
            if most.index == least.index
            else f" (least: GPU {least.index}, {least.peak_mib} MiB)"
        )
        said.append(f"memory peaked at {most.peak_mib} MiB on GPU {most.index}{phase}{spread}")
    for reason in sorted({name for use in uses for name, _ in use.slowed}):
        slow = [(use.index, dict(use.slowed)[reason]) for use in uses if reason in dict(use.slowed)]
        seconds = max(s for _, s in slow)
        said.append(f"{reason} on {_gpus([index for index, _ in slow])}, up to {seconds:g} s")
    for use in uses:
        if use.xids:
            codes = ", ".join(map(str, dict.fromkeys(use.xids)))
            said.append(f"GPU {use.index} reported Xid {codes}")
        if use.ecc_errors:
            said.append(f"GPU {use.index} had {use.ecc_errors} uncorrected memory errors")
        if use.lost:
            said.append(f"GPU {use.index} stopped to answer: {use.lost}")
    others = {one.pid: one for use in uses for one in use.foreign}
    for pid, one in sorted(others.items()):
        held = [use.index for use in uses if pid in {other.pid for other in use.foreign}]
        name = f" ({one.name})" if one.name else ""
        said.append(f"process {pid}{name}, which is none of the launch, held {_gpus(held)}")
    return tuple(said)


def _gpus(numbers: list[int]) -> str:
    return ("GPU " if len(numbers) == 1 else "GPUs ") + ", ".join(map(str, numbers))
