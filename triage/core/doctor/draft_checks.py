"""Checks of speculation and of the command line itself: draft against target, flags, JSON.

In:  Facts with a launch. Out: CHECKS.
Not: the target model alone (model_checks.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from triage.core.doctor.backend_checks import MLA_BACKENDS
from triage.core.doctor.checks import Hit, check
from triage.core.doctor.facts import Facts
from triage.core.doctor.gpu_checks import used
from triage.core.doctor.model_checks import derived_context
from triage.core.machine.facts import Unavailable, known, known_or
from triage.core.machine.gpus import Gpu
from triage.core.machine.models import Model

_EAGLE = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
JSON_FLAGS = ("json-model-override-args", "model-loader-extra-config", "speculative-config",
              "cuda-graph-config", "hicache-storage-backend-extra-config")  # fmt: skip
# Backends that verify a tree of drafts with pages of more than one token.
# Source: SGLang 0.5.23, arg_groups/speculative_hook.py
PAGED_TREES = ("flashinfer", "fa3", "triton", "trtllm_mla", "flashmla", "fa4")
INHERITED_UNTIL = (0, 5, 12)  # Source: sgl-project/sglang issue 23490


def _algorithm(facts: Facts) -> str:
    return known(facts.launch).text("speculative-algorithm").upper()


def _pair(facts: Facts) -> tuple[Model, Model]:
    """Target and draft, both with a readable config."""
    target, draft = known(facts.model), known(facts.draft)
    known(target.config)
    known(draft.config)
    return target, draft


@check(
    "draft-format",
    group="draft",
    severity="error",
    sound="the draft's config is in the engine's own form",
    breaks="reading the draft's config fails",
    source="https://github.com/sgl-project/sglang/issues/18216",
    prevents=("spec-draft-config-invalid",),
)
def draft_format(facts: Facts) -> Iterator[Hit]:
    """Drafts of the speculators library keep their config in another layout."""
    config = known(known(facts.draft).config)
    foreign = [key for key in config if key.startswith("speculators_")]
    if foreign and "architectures" in config:
        told: tuple[str, ...] = (f"config.json of the draft: {', '.join(sorted(foreign))}",)
        fix = "use the draft's SGLang release, or convert it"
        yield Hit("The draft is in the format of the speculators library.", told, fix)


@check(
    "draft-vocabulary",
    group="draft",
    severity="error",
    sound="draft and target have one vocabulary",
    breaks="capture of the draft fails: index out of bounds, hundreds of times",
    source="https://github.com/sgl-project/sglang/issues/8870",
    prevents=("device-side-assert-index",),
)
def draft_vocabulary(facts: Facts) -> Iterator[Hit]:
    """vocab_size of both; a shorter draft_vocab_size with a token map is sound."""
    target, draft = _pair(facts)
    mine, theirs = draft.number("vocab_size"), target.number("vocab_size")
    if mine and theirs and mine != theirs:
        told: tuple[str, ...] = (f"draft: vocab_size {mine}", f"target: vocab_size {theirs}")
        yield Hit("Draft and target have different vocabularies.", told,
                  "take the draft that was made for this target")  # fmt: skip


@check(
    "draft-hidden-size",
    group="draft",
    severity="error",
    sound="the draft takes hidden states of the target's width",
    breaks="the first draft step fails on a shape, or transfers states of the wrong size",
    source="https://github.com/sgl-project/sglang/pull/13590",
    prevents=("spec-hidden-size-mismatch", "weight-shape-mismatch"),
)
def draft_hidden_size(facts: Facts) -> Iterator[Hit]:
    """hidden_size of both; EAGLE3 may state the target's width apart, but not across PD."""
    target, draft = _pair(facts)
    algorithm, launch = _algorithm(facts), known(facts.launch)
    theirs = target.number("hidden_size")
    mine = draft.number("target_hidden_size") or draft.number("hidden_size")
    told: tuple[str, ...] = (
        f"draft: hidden_size {draft.number('hidden_size')}",
        f"target: hidden_size {theirs}",
    )
    if algorithm in ("EAGLE", "NEXTN", "EAGLE3") and mine and theirs and mine != theirs:
        yield Hit("The draft is made for another hidden size.", told,
                  "take the draft that was made for this target")  # fmt: skip
    elif (
        launch.text("disaggregation-mode") not in ("", "null")
        and draft.number("hidden_size") != theirs
    ):
        yield Hit(
            "Prefill and decode transfer hidden states, and the draft's are of another size.",
            told, "install sglang 0.5.6 or newer, or speculate without --disaggregation-mode",
            "warning",
        )  # fmt: skip


@check(
    "draft-context",
    group="draft",
    severity="warning",
    sound="the draft reaches as far as the context",
    breaks="positions past the draft's end: a device-side assert while serving",
    source="https://github.com/sgl-project/sglang/pull/9388",
    prevents=("spec-draft-context-shorter",),
)
def draft_context(facts: Facts) -> Iterator[Hit]:
    """The draft's positions against the context that the launch serves."""
    target, draft = _pair(facts)
    served = known(facts.launch).number("context-length", 0) or derived_context(target)
    reach = derived_context(draft)
    if reach and served and reach < served:
        told: tuple[str, ...] = (f"draft: {reach} positions", f"context: {served}")
        fix = f"--context-length {reach}"
        yield Hit("The draft has fewer positions than the context.", told, fix)


@check(
    "draft-block-size",
    group="draft",
    severity="error",
    sound="the draft's block size is the one asked for",
    breaks="capture of the draft fails on a shape",
    source="https://github.com/sgl-project/sglang/issues/31018",
    prevents=("spec-block-size-mismatch",),
)
def draft_block_size(facts: Facts) -> Iterator[Hit]:
    """The flag of DSPARK or DFLASH against the draft's config."""
    launch, draft = known(facts.launch), known(facts.draft)
    known(draft.config)
    for kind in ("dspark", "dflash"):
        flag = f"speculative-{kind}-block-size"
        asked, stored = launch.number(flag, 0), draft.number(f"{kind}_block_size", "block_size")
        if asked and stored and asked != stored:
            told: tuple[str, ...] = (f"--{flag} {asked}", f"draft's config.json: {stored}")
            yield Hit("The draft was made for another block size.", told, f"--{flag} {stored}")


@check(
    "draft-algorithm",
    group="draft",
    severity="error",
    sound="the algorithm is the draft's",
    breaks="the draft is fed what it was not trained on: nothing is accepted, or it crashes",
    source="https://github.com/sgl-project/sglang/pull/21272",
    prevents=("spec-draft-is-no-draft",),
)
def draft_algorithm(facts: Facts) -> Iterator[Hit]:
    """An EAGLE3 draft under EAGLE takes no auxiliary hidden states; and the reverse."""
    draft, algorithm = known(facts.draft), _algorithm(facts)
    known(draft.config)
    named = " ".join(draft.architectures())
    third = "eagle3" in named.lower()
    if (third and algorithm == "EAGLE") or (
        algorithm == "EAGLE3" and named and not third and "eagle" in named.lower()
    ):
        wanted = "EAGLE3" if third else "EAGLE"
        told: tuple[str, ...] = (
            f"--speculative-algorithm {algorithm}",
            f"draft's architecture: {named}",
        )
        fix = f"--speculative-algorithm {wanted}"
        yield Hit("The draft belongs to another algorithm.", told, fix)


@check(
    "draft-backend",
    group="draft",
    severity="warning",
    sound="the draft has an attention backend of its kind",
    breaks="the draft is built with the target's MLA backend and fails at its first layer",
    source="https://github.com/sgl-project/sglang/issues/23490",
    prevents=("spec-draft-backend-inherited", "draft-backend-missing-method"),
)
def draft_backend(facts: Facts) -> Iterator[Hit]:
    """An MLA target with an MHA draft that is not given a backend of its own."""
    target, draft = _pair(facts)
    launch = known(facts.launch)
    if target.number("kv_lora_rank") is None or draft.number("kv_lora_rank") is not None:
        return
    if launch.text("speculative-draft-attention-backend"):
        return
    named = launch.text("attention-backend")
    blackwell = any(known_or(g.capability, (0, 0))[0] == 10 for g in _gpus(facts))  # noqa: PLR2004
    version = facts.engine_version()
    by_default = not named and blackwell and (not version or version < INHERITED_UNTIL)
    if named in MLA_BACKENDS or by_default:
        told: tuple[str, ...] = (
            f"target: kv_lora_rank {target.number('kv_lora_rank')}",
            f"draft: {', '.join(draft.architectures())} without one",
            f"attention backend: {named or 'trtllm_mla, by default on these GPUs'}",
        )
        fix = "--speculative-draft-attention-backend trtllm_mha"
        yield Hit("The draft would inherit the target's MLA backend.", told, fix)


def _gpus(facts: Facts) -> tuple[Gpu, ...]:
    return () if isinstance(facts.gpus, Unavailable) else used(facts)


@check(
    "speculation",
    group="draft",
    severity="error",
    sound="algorithm, top-k, page size and backend go together",
    breaks="the engine refuses them, or the first tree of drafts fails",
    source="https://github.com/sgl-project/sglang/issues/14077",
    prevents=("spec-topk-unsupported", "nonetype-spec-arg-unset"),
)
def speculation(facts: Facts) -> Iterator[Hit]:
    """Trees (top-k above 1) need a backend that verifies them in pages, and no overlap."""
    launch, algorithm = known(facts.launch), _algorithm(facts)
    topk = launch.number("speculative-eagle-topk", 0)
    if algorithm not in (*_EAGLE, "NGRAM"):
        return
    flat = "--speculative-eagle-topk 1"
    backend = launch.text("attention-backend")
    if topk > 1 and launch.env.get("SGLANG_ENABLE_SPEC_V2", "0").lower() in ("1", "true"):
        told: tuple[str, ...] = (f"--speculative-eagle-topk {topk}", "SGLANG_ENABLE_SPEC_V2=1")
        yield Hit("Overlapped speculation has no trees.", told, flat)
    if topk > 1 and backend == "trtllm_mha":
        told = (f"--speculative-eagle-topk {topk}", f"--attention-backend {backend}")
        yield Hit(f"{backend} verifies no trees.", told, flat)
    elif topk > 1 and launch.number("page-size", 1) > 1 and backend not in ("", *PAGED_TREES):
        told = (f"--speculative-eagle-topk {topk}", f"--page-size {launch.text('page-size')}",
                f"--attention-backend {backend}")  # fmt: skip
        yield Hit("Trees with pages of more than one token need another backend.", told,
                  f"{flat}, or --page-size 1")  # fmt: skip
    steps = launch.number("speculative-num-steps", 0)
    tokens = launch.number("speculative-num-draft-tokens", 0)
    if algorithm in _EAGLE and not steps and (topk or tokens):
        told = ("--speculative-num-steps is not set, others of its kind are",)
        fix = "set --speculative-num-steps, -eagle-topk and -num-draft-tokens, or none of them"
        yield Hit(f"{algorithm} is given in part.", told, fix)
    elif algorithm in _EAGLE and steps and not topk:
        told = (f"--speculative-num-steps {steps}", "--speculative-eagle-topk is not set")
        yield Hit(f"{algorithm} is given in part.", told, flat)


@check(
    "flags",
    group="flags",
    severity="error",
    sound="the engine knows every flag",
    breaks="the engine ends at once with its usage",
    source="https://github.com/sgl-project/sglang/issues/12818",
    prevents=("args-unrecognized", "args-value-invalid", "args-ambiguous"),
)
def flags(facts: Facts) -> Iterator[Hit]:
    """What the reader of the command found that the engine will refuse; a fork may know more."""
    launch = known(facts.launch)
    look = "python -m sglang.launch_server --help"
    for problem in launch.problems:
        say, _, more = problem.partition("; ")
        yield Hit(f"{say.strip().rstrip('.')}.", (more,) if more else (problem,), look)
    for note in launch.unknown:
        name, _, right = note.partition(", which spells it ")
        if right:
            yield Hit(f"{name}.", (note,), right)
        else:
            say, _, now = note.partition("; an older release had it: now ")
            say = say.partition(";")[0]
            fix = now or f"leave {say.split()[0]} out, unless a fork has it"
            yield Hit(f"{say}.", (note,), fix, "warning")


@check(
    "json-flags",
    group="flags",
    severity="error",
    sound="flags that take JSON have some",
    breaks="the engine ends at once: cannot be converted",
    source="https://github.com/sgl-project/sglang/issues/7223",
    prevents=("args-json-invalid",),
)
def json_flags(facts: Facts) -> Iterator[Hit]:
    """Values whose quotes were lost on the way."""
    launch = known(facts.launch)
    for name in JSON_FLAGS:
        text = launch.text(name)
        if not text or (name != "json-model-override-args" and not text.startswith("{")):
            continue
        try:
            parsed = json.loads(text)
        except ValueError as error:
            told: tuple[str, ...] = (f"--{name} {text[:60]}", str(error))
            fix = f"--{name} '{{\"key\": 1}}'  # single quotes around it, double inside"
            yield Hit(f"--{name} is no JSON.", told, fix)
        else:
            if not isinstance(parsed, Mapping):
                told = (f"--{name} {text[:60]}",)
                yield Hit(f"--{name} is no JSON object.", told, f"--{name} '{{}}'")


CHECKS = (
    draft_format, draft_vocabulary, draft_hidden_size, draft_context, draft_block_size,
    draft_algorithm, draft_backend, speculation, flags, json_flags,
)  # fmt: skip
