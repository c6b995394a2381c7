"""What the outcomes of a probe mean: a sentence each, and for or against which causes they speak.

In:  a ProbeResult as it was read. Out: the same with meaning, findings and what they rule out.
Not: the confidence of a diagnosis (revise.py).

Only what ran on a GPU says anything about a failure on a GPU. Addresses and ports are the
same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triage.core.probes.results import Experiment, Finding, ProbeResult, failed

_MEMORY = "mem-fraction-static"
_IN_CAPTURE = ("cublaslt-heuristic-in-capture", "cublas-create-failed")
_NVLS = (
    "nccl-nvls-multicast-bind", "nccl-nvls-multicast-container", "hang-nvls-bind",
    "cuda-802-fabric-manager", "imex-fabric-not-permitted",
)  # fmt: skip
_ABSORB = "cublas-mla-absorb-bmm"
_SHORT = "With {} it was not done within the limit, and near it without: try a longer --limit."
_POISONED = ("graph-capture-illegal-memory", "cublas-exec-failed-gemm")


def explained(result: ProbeResult) -> ProbeResult:
    """The result with its meaning."""
    if result.outcome != "done":
        return replace(result, meaning=(_not_done(result),))
    if result.device == "cpu" and result.probe not in ("rendezvous", "allreduce", "self-test"):
        ran = sum(e.outcome == "passed" for e in result.experiments if e.name != "device")
        return replace(
            result,
            meaning=(
                f"It ran on the CPU ({ran} experiments passed): that says nothing about a GPU.",
            ),
        )
    return _RULES[result.probe](result)


def _not_done(result: ProbeResult) -> str:
    match result.outcome:
        case "unavailable":
            return f"It could not be made here: {result.reason}."
        case "hung":
            return "It hung as a whole: the device or its driver does not answer."
        case "killed":
            return f"It was killed ({result.reason}): memory of the host may be short."
        case _:
            return f"It crashed as a whole ({result.reason}): its Python or torch is broken."


def _absorb(result: ProbeResult) -> ProbeResult:
    """The products alone: at which free memory, in which mode, with which status they fail."""
    ran = [e for e in result.at(dtype="bf16") if e.outcome != "skipped"]
    fp8 = [e for e in result.at(dtype="fp8") if e.outcome != "skipped"]
    said, findings, out = [], [], []
    wrong = failed(ran)
    least = min((_mib(e) for e in ran), default=0)
    most = max((_mib(e) for e in ran), default=0)
    if not ran:
        said.append("No product ran, so nothing is known of them.")
    elif not wrong:
        said.append(
            f"The products work alone, eager and captured, down to {least} MiB free: cuBLAS, the"
            " shapes and the memory are not to blame, so an earlier kernel broke the context."
        )
        why = f"mla-absorb-bmm passes alone down to {least} MiB free"
        findings.append(Finding(cause=_ABSORB, effect="refutes", why=why))
        findings += [Finding(cause=c, effect="supports", why=why) for c in _POISONED]
        out.append((_MEMORY, why))
    elif any(_mib(e) == most for e in wrong):
        first = next(e for e in wrong if _mib(e) == most)
        said.append(
            f"The products fail alone even with {most} MiB free ({_status(first)}): the shapes,"
            " the library or the architecture are to blame, and no flag of memory helps."
        )
        why = f"mla-absorb-bmm fails alone with {most} MiB free ({_status(first)})"
        findings.append(Finding(cause=_ABSORB, effect="supports", why=why))
        out.append((_MEMORY, why))
    else:
        edge = max(_mib(e) for e in wrong)
        names = ", ".join(dict.fromkeys(_status(e) for e in wrong))
        said.append(
            f"The products fail alone with {edge} MiB free or less ({names}) and work with more:"
            " compare with the free memory of the log, and leave more."
        )
        why = f"mla-absorb-bmm fails only with {edge} MiB free or less ({names})"
        findings.append(Finding(cause=_ABSORB, effect="supports", why=why))
    captured = failed(e for e in wrong if e.given.get("mode") == "captured")
    if captured and not failed(e for e in wrong if e.given.get("mode") == "eager"):
        said.append("They fail only in a capture: the graph, not the product, is to blame.")
    if fp8 and failed(fp8):
        said.append(f"fp8 fails as well ({_status(failed(fp8)[0])}).")
        why = f"mla-absorb-bmm with fp8 fails alone ({_status(failed(fp8)[0])})"
        findings.append(Finding(cause="cublaslt-bmm-fp8-failed", effect="supports", why=why))
    elif fp8:
        why = "mla-absorb-bmm with fp8 passes alone"
        findings += [
            Finding(cause=c, effect="refutes", why=why)
            for c in ("cublaslt-bmm-fp8-failed", "cublaslt-bmm-fp8-unsupported")
        ]
    return _with(result, said, findings, out)


def _capture(result: ProbeResult) -> ProbeResult:
    warm, cold = result.one("warm"), result.one("cold")
    said: list[str] = []
    findings: list[Finding] = []
    if warm is None or warm.outcome == "skipped":
        said.append("Nothing was captured, so nothing is known of captures.")
    elif warm.outcome != "passed":
        said.append(
            f"Even a warmed-up product cannot be captured ({_status(warm)}): driver and torch do"
            " not go together, and no flag but graphs off helps."
        )
    else:
        said.append("A product can be captured after a warm-up.")
    if cold is not None and warm is not None and warm.outcome == "passed":
        if cold.outcome == "passed":
            said.append("It needs no warm-up, so a handle made within a capture is not the fault.")
            why = "graph-capture works without a warm-up"
            findings += [Finding(cause=c, effect="refutes", why=why) for c in _IN_CAPTURE]
        elif cold.outcome != "skipped":
            said.append(
                f"Without a warm-up it fails ({_status(cold)}): the first call of a library within"
                " a capture does not work on this stack."
            )
            why = f"graph-capture fails without a warm-up ({_status(cold)})"
            findings += [Finding(cause=c, effect="supports", why=why) for c in _IN_CAPTURE]
    passed = [
        e.name for e in result.experiments if e.given.get("must_fail") and e.outcome == "passed"
    ]
    if passed:
        said.append(f"{', '.join(passed)}: passed and must fail; captures are not checked here.")
    return _with(result, said, findings, [])


def _handle(result: ProbeResult) -> ProbeResult:
    wrong = failed(result.experiments)
    inside = [e for e in wrong if e.name.startswith("in a capture")]
    short = [e for e in wrong if e.given.get("free_mib") is not None]
    said, findings, out = [], [], []
    if not wrong:
        said.append("cuBLAS makes its handle everywhere that was tried, also within a capture.")
        why = "cublas-handle passes everywhere"
        findings += [Finding(cause=c, effect="refutes", why=why) for c in _IN_CAPTURE]
        out.append((_MEMORY, why))
    if inside:
        said.append(f"The handle cannot be made within a capture ({_status(inside[0])}).")
        why = f"cublas-handle fails in a capture ({_status(inside[0])})"
        findings += [Finding(cause=c, effect="supports", why=why) for c in _IN_CAPTURE]
    if short:
        most = max(_mib(e) for e in short)
        said.append(f"The handle cannot be made with {most} MiB free ({_status(short[0])}).")
        why = f"cublas-handle fails with {most} MiB free ({_status(short[0])})"
        findings.append(Finding(cause="cublas-create-failed", effect="supports", why=why))
    if wrong and not inside and not short:
        said.append(f"The handle cannot be made at all ({_status(wrong[0])}): driver or library.")
    return _with(result, said, findings, out)


def _multicast(result: ProbeResult) -> ProbeResult:
    attribute, whole = result.one("attribute"), result.one("object over all GPUs")
    fabric = result.one("fabric state")
    if attribute is None or attribute.outcome == "skipped":
        return _with(result, ["There is no driver here, so nothing is known of multicast."], [], [])
    values = attribute.facts.get("supported")
    if isinstance(values, list) and not all(values):
        said = ["A GPU has no multicast: NVLS must stay off (NCCL_NVLS_ENABLE=0)."]
        why = "multicast: the driver's attribute is 0"
        return _with(
            result, said, [Finding(cause=c, effect="supports", why=why) for c in _NVLS], []
        )
    if whole is not None and whole.outcome == "passed":
        said = ["The driver makes a multicast object over all GPUs: NVLS has what it needs."]
        why = "multicast: an object over all GPUs can be made"
        return _with(result, said, [Finding(cause=c, effect="refutes", why=why) for c in _NVLS], [])
    wrong = whole if whole is not None else attribute
    state = fabric.facts.get("states") if fabric is not None else None
    said = [
        f"The driver refuses a multicast object ({wrong.detail or wrong.outcome}): the fabric"
        " manager, its version or the container's devices are to blame, not a flag."
    ]
    if isinstance(state, list):
        said.append(f"State of the fabric: {', '.join(map(str, dict.fromkeys(state)))}.")
    why = f"multicast: no object can be made ({wrong.status or wrong.outcome})"
    return _with(result, said, [Finding(cause=c, effect="supports", why=why) for c in _NVLS], [])


def _allreduce(result: ProbeResult) -> ProbeResult:
    said: list[str] = []
    findings: list[Finding] = []
    gloo = result.one("gloo")
    if gloo is not None:
        works = gloo.outcome == "passed"
        said.append(
            "gloo adds up between processes of this machine; without GPUs NCCL was not tried."
            if works
            else f"gloo does not add up on this machine ({gloo.detail[:200] or gloo.outcome})."
        )
        findings.append(
            Finding(
                cause="gloo-hostname-loopback",
                effect="refutes" if works else "supports",
                why=f"allreduce: gloo between two local processes {gloo.outcome}",
            )
        )
    plain, nvls = result.one("nccl, NVLS 0"), result.one("nccl, NVLS 1")
    if plain is not None and nvls is not None and plain.outcome != "skipped":
        if plain.outcome != "passed":
            said.append(f"NCCL does not add up even without NVLS ({plain.detail[:200]}).")
            why = f"allreduce: NCCL without NVLS {plain.outcome}"
            findings.append(Finding(cause="hang-nccl-init", effect="supports", why=why))
        elif nvls.outcome == "passed":
            said.append("NCCL adds up with NVLS off and on.")
            why = "allreduce: NCCL adds up with NVLS"
            findings += [Finding(cause=c, effect="refutes", why=why) for c in _NVLS]
        elif _too_short(plain, nvls):
            said.append(_SHORT.format("NVLS"))
        else:
            said.append(f"NCCL adds up without NVLS and not with it ({nvls.outcome}).")
            why = f"allreduce: NCCL with NVLS {nvls.outcome}"
            findings += [Finding(cause=c, effect="supports", why=why) for c in _NVLS]
    symmetric = result.one("symmetric memory")
    if symmetric is not None and plain is not None and _too_short(plain, symmetric):
        said.append(_SHORT.format("symmetric memory"))
    elif symmetric is not None and symmetric.outcome not in ("passed", "skipped"):
        said.append(f"Symmetric memory does not work ({symmetric.outcome}).")
        why = f"allreduce: symmetric memory {symmetric.outcome}"
        findings += [
            Finding(cause=c, effect="supports", why=why)
            for c in ("flashinfer-allreduce-rendezvous-hang", "hang-symm-mem-window-register")
        ]
    elif symmetric is not None and symmetric.outcome == "passed":
        said.append("Symmetric memory works.")
        why = "allreduce: symmetric memory works"
        findings += [
            Finding(cause=c, effect="refutes", why=why)
            for c in ("flashinfer-allreduce-rendezvous-hang", "hang-symm-mem-window-register")
        ]
    return _with(result, said or ["Nothing was added up."], findings, [])


def _too_short(plain: Experiment, other: Experiment) -> bool:
    """Whether the other may have needed no more than a little longer than the plain one."""
    return other.outcome == "hung" and plain.seconds * 2 > other.seconds


def _rendezvous(result: ProbeResult) -> ProbeResult:
    said, findings = [], []
    name, store = result.one("own name"), result.one("store")
    if name is not None and name.outcome == "failed":
        said.append(f"The machine's own name does not resolve ({name.detail[:160]}).")
        why = "rendezvous: the own name does not resolve"
        findings.append(Finding(cause="gloo-hostname-loopback", effect="supports", why=why))
    elif name is not None and name.facts.get("loopback") is True:
        said.append("The machine's own name is a loopback address: other nodes cannot reach it.")
        why = "rendezvous: the own name resolves to a loopback address"
        findings.append(Finding(cause="gloo-hostname-loopback", effect="supports", why=why))
    elif name is not None and name.outcome == "passed":
        why = "rendezvous: the own name resolves to an address that others can reach"
        findings.append(Finding(cause="gloo-hostname-loopback", effect="refutes", why=why))
    port = result.one("port")
    if port is not None and port.outcome == "failed":
        said.append(f"The port cannot be listened on ({port.detail[:160]}).")
        why = f"rendezvous: the port cannot be listened on ({port.status})"
        findings.append(Finding(cause="dist-port-in-use", effect="supports", why=why))
    if store is not None and store.outcome == "passed":
        said.append("Two processes of this machine meet in a store.")
        why = "rendezvous: two local processes meet in a store"
        findings.append(Finding(cause="dist-connect-timeout", effect="refutes", why=why))
    elif store is not None and store.outcome != "skipped":
        said.append(f"Two processes of this machine do not meet ({store.detail[:160]}).")
        why = f"rendezvous: two local processes do not meet ({store.status or store.outcome})"
        findings.append(Finding(cause="dist-connect-timeout", effect="supports", why=why))
    missing = result.one("missing rank")
    if missing is not None and missing.outcome == "hung":
        said.append("Waiting for a rank that never comes does not end by itself.")
    return _with(result, said or ["Nothing was tried."], findings, [])


def _moe(result: ProbeResult) -> ProbeResult:
    """Whole experts against slices: how many times faster they are read."""
    ratios = {}
    for experiment in result.at(layout="TP"):
        tokens = experiment.given.get("tokens")
        other = next(iter(result.at(layout="EP", tokens=tokens)), None)
        rates = [e.facts.get("bytes_per_s") for e in (experiment, other) if e is not None]
        if len(rates) == 2 and all(isinstance(r, int | float) and r > 0 for r in rates):  # noqa: PLR2004
            ratios[tokens] = rates[1] / rates[0]  # type: ignore[operator]
    if not ratios:
        return _with(result, ["No pair of layouts was measured."], [], [])
    each = ", ".join(f"{ratio:.2f}x at {tokens} tokens" for tokens, ratio in ratios.items())
    said = [
        f"Weights of whole experts are read {each}, as fast as slices being 1.00x; in bf16 with"
        " torch's own product, not with the engine's kernel."
    ]
    return _with(result, said, [], [])


def _self_test(result: ProbeResult) -> ProbeResult:
    return _with(result, [", ".join(f"{e.name}: {e.outcome}" for e in result.experiments)], [], [])


def _with(
    result: ProbeResult, said: list[str], findings: list[Finding], out: list[tuple[str, str]]
) -> ProbeResult:
    return replace(result, meaning=tuple(said), findings=tuple(findings), rules_out=tuple(out))


def _mib(experiment: Experiment) -> int:
    value = experiment.given.get("free_mib")
    return int(value) if isinstance(value, int | float) else 0


def _status(experiment: Experiment) -> str:
    return experiment.status or experiment.outcome


_RULES: dict[str, Callable[[ProbeResult], ProbeResult]] = {
    "mla-absorb-bmm": _absorb,
    "graph-capture": _capture,
    "multicast": _multicast,
    "cublas-handle": _handle,
    "allreduce": _allreduce,
    "rendezvous": _rendezvous,
    "moe-kernel": _moe,
    "self-test": _self_test,
}
