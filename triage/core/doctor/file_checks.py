"""Checks of disks, caches and checkpoints: room, rights, place, truncated files.

In:  Facts. Out: CHECKS.
Not: what the checkpoint's config means for the launch (model_checks.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.core.doctor.checks import Hit, check
from triage.core.doctor.facts import Facts
from triage.core.machine.facts import Unavailable, known
from triage.core.machine.host import Disk

LEAST_MIB = 1024
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "ceph")
FLEETING = ("overlay", "tmpfs", "ramfs")
STALE_S = 120.0


def _moved(variable: str) -> str:
    """The command that puts a cache elsewhere."""
    return f"export {variable}=/var/tmp/{variable.lower()}" if variable else "df -h"


@check(
    "disk-full",
    group="files",
    severity="error",
    sound="there is room where the engine writes",
    breaks="downloads and compiled kernels end with: No space left on device",
    source="https://github.com/huggingface/text-generation-inference/issues/3087",
    prevents=("disk-full",),
)
def disk_full(facts: Facts) -> Iterator[Hit]:
    """Less than 1 GiB free in a cache or in TMPDIR."""
    seen: set[str] = set()
    for place in facts.places:
        disk = place.disk
        if isinstance(disk, Unavailable) or disk.mount in seen or disk.free_mib >= LEAST_MIB:
            continue
        seen.add(disk.mount)
        told = (f"{disk.path} lies on {disk.mount}: {disk.free_mib} of {disk.total_mib} MiB free",)
        yield Hit(f"The disk of the {place.what} is full.", told, _moved(place.variable))


@check(
    "cache-not-writable",
    group="files",
    severity="error",
    sound="the engine may write its caches",
    breaks="the import or the first kernel fails: Read-only file system, Permission denied",
    source="https://github.com/Center-for-AI-Innovation/LLMFlux/issues/124",
    prevents=("cache-dir-not-writable",),
)
def cache_not_writable(facts: Facts) -> Iterator[Hit]:
    """A cache below a read-only home or a folder of another user."""
    for place in facts.places:
        disk = place.disk
        if isinstance(disk, Unavailable) or disk.writable:
            continue
        why = f"{disk.mount} is mounted read-only" if disk.read_only else "no permission to write"
        say = f"The {place.what} cannot be written."
        yield Hit(say, (f"{disk.path}: {why}",), _moved(place.variable))


@check(
    "cache-on-network",
    group="files",
    severity="warning",
    sound="kernels are cached on a local disk",
    breaks="ranks that compile the same kernel lose files under each other",
    source="https://github.com/sgl-project/sglang/issues/472",
    prevents=("cache-dir-nfs",),
)
def cache_on_network(facts: Facts) -> Iterator[Hit]:
    """A network file system under a cache of compiled kernels; weights may lie on one."""
    for place in facts.places:
        disk = place.disk
        if isinstance(disk, Disk) and disk.kind in NETWORK and _compiled(place.what):
            told = (f"{disk.path} lies on {disk.mount} ({disk.kind})",)
            say = f"The {place.what} lies on a network file system."
            yield Hit(say, told, _moved(place.variable))


@check(
    "cache-fleeting",
    group="files",
    severity="note",
    sound="compiled kernels outlive the container",
    breaks="every start compiles for 10 to 20 minutes, which looks like a hang",
    source="https://github.com/sgl-project/sglang/issues/29170",
    prevents=("slow-start-deepgemm-precompile",),
)
def cache_fleeting(facts: Facts) -> Iterator[Hit]:
    """The DeepGEMM cache inside the container's own layer."""
    if not facts.host.container:
        return
    for place in facts.places:
        disk = place.disk
        if isinstance(disk, Disk) and disk.kind in FLEETING and "DeepGEMM" in place.what:
            told = (f"{disk.path} lies on {disk.mount} ({disk.kind})",)
            fix = f"docker run -v /var/cache/sglang:{disk.path} ..."
            yield Hit(f"The {place.what} ends with the container.", told, fix)


def _compiled(what: str) -> bool:
    return any(name in what for name in ("Triton", "DeepGEMM", "FlashInfer", "torch"))


@check(
    "extension-lock",
    group="files",
    severity="error",
    sound="no dead build holds a lock",
    breaks="every rank waits for ever for a build that nobody makes",
    source="https://github.com/sgl-project/sglang/pull/18987",
    prevents=("hang-torch-extension-lock",),
)
def extension_lock(facts: Facts) -> Iterator[Hit]:
    """The lock of a torch extension build that was killed."""
    for lock in known(facts.locks):
        if lock.age_s > STALE_S:
            told = (f"{lock.path}: {lock.age_s / 60:.0f} minutes old",)
            yield Hit("A build of a torch extension left its lock.", told, f"rm {lock.path}")


@check(
    "model-path",
    group="files",
    severity="error",
    sound="the checkpoint's folder is there",
    breaks="the engine takes the path for a name on the hub, and does not find it",
    source="https://github.com/sgl-project/sglang/issues/5386",
    prevents=("hf-hub-offline", "hf-hub-auth"),
)
def model_path(facts: Facts) -> Iterator[Hit]:
    """A path of this machine that is no folder, for the model or the draft."""
    launch = known(facts.launch)
    for flag, model in (
        ("model-path", facts.model),
        ("speculative-draft-model-path", facts.draft),
    ):
        name = launch.text(flag)
        gone = isinstance(model, Unavailable) and model.reason.endswith(
            "is no folder on this machine"
        )
        if gone and name.startswith(("/", "./", "../", "~")):
            yield Hit(f"--{flag} {name} is no folder.", (name,), f"ls -d {name}")


@check(
    "config-json",
    group="files",
    severity="error",
    sound="the JSON files of the checkpoint are whole",
    breaks="reading the config or the tokenizer fails with a JSON error",
    source="https://github.com/allenai/olmocr/issues/105",
    prevents=("config-json-invalid",),
)
def config_json(facts: Facts) -> Iterator[Hit]:
    """config.json, the index and the tokenizer's files, of the model and of the draft."""
    for model in (known(facts.model), facts.draft):
        if not isinstance(model, Unavailable):
            for name, why in model.broken_json.items():
                told = (f"{model.folder}/{name}: {why}",)
                yield Hit(f"{name} of {model.name} is no JSON.", told, _again(model.name))


@check(
    "checkpoint",
    group="files",
    severity="error",
    sound="the weight files are whole",
    breaks="loading fails late, with a header error or a bus error",
    source="https://github.com/sgl-project/sglang/issues/6083",
    prevents=("checkpoint-corrupt", "sigbus-weight-load", "weight-key-missing"),
)
def checkpoint(facts: Facts) -> Iterator[Hit]:
    """Headers of safetensors against file sizes; pointers of Git LFS; shards that are missing."""
    for model in (known(facts.model), facts.draft):
        if isinstance(model, Unavailable):
            continue
        wrong = [file for file in model.weights if file.fault]
        if wrong:
            told = tuple(f"{file.name}: {file.fault}" for file in wrong[:4])
            more = (f"and {len(wrong) - 4} more",) if len(wrong) > 4 else ()  # noqa: PLR2004
            are = "file is" if len(wrong) == 1 else "files are"
            say = f"{len(wrong)} weight {are} broken in {model.name}."
            yield Hit(say, (*told, *more), _again(model.name))
        if model.missing:
            are = "file is" if len(model.missing) == 1 else "files are"
            say = f"{len(model.missing)} weight {are} missing in {model.name}."
            yield Hit(say, model.missing[:4], _again(model.name))

        dummy = not isinstance(facts.launch, Unavailable) and (
            facts.launch.text("load-format") == "dummy"
        )
        if not model.weights and not model.missing and not dummy:
            told = (f"{model.folder}: no .safetensors, .gguf, .bin or .pt",)
            yield Hit(f"{model.name} has no weights.", told, _again(model.name))


def _again(name: str) -> str:
    """How to fetch a checkpoint again."""
    if name.startswith(("/", ".")):
        return f"hf download ORGANISATION/NAME --local-dir {name}"
    return f"hf download {name}"


@check(
    "hub",
    group="files",
    severity="error",
    sound="the model is here, or the hub gives it",
    breaks="every rank asks the hub and is refused",
    source="https://github.com/sgl-project/sglang/pull/14644",
    prevents=("hf-hub-auth", "hf-hub-offline", "hf-hub-rate-limit"),
)
def hub(facts: Facts) -> Iterator[Hit]:
    """A model named by its hub id: the cache, offline mode, the token, and what the hub says."""
    asked = known(facts.hub)
    if asked.cached and asked.complete:
        return
    told = [f"{asked.name} is {'incomplete in' if asked.cached else 'not in'} the local cache"]
    if asked.offline:
        told.append("HF_HUB_OFFLINE is set")
        say = f"{asked.name} is not complete here, and the hub may not be asked."
        yield Hit(say, tuple(told), f"HF_HUB_OFFLINE=0 hf download {asked.name}")
        return
    if isinstance(asked.answer, Unavailable):
        if not asked.token:
            told.append("no HF_TOKEN; a gated model answers 401 without one")
        say = f"{asked.name} will be downloaded by every rank at start."
        yield Hit(say, tuple(told), f"hf download {asked.name}", "warning")
        return
    told.append(f"the hub answers {asked.answer}")
    fixes = {
        401: "export HF_TOKEN=...  # of an account that was given access",
        403: "ask for access on the model's page, then export HF_TOKEN=...",
        404: "check the name, and HF_TOKEN: a private model answers 404 too",
        429: f"export HF_TOKEN=... && hf download {asked.name}  # once, before the launch",
    }
    if asked.answer in fixes:
        yield Hit(f"The hub refuses {asked.name}.", tuple(told), fixes[asked.answer])


CHECKS = (
    disk_full, cache_not_writable, cache_on_network, cache_fleeting, extension_lock, model_path,
    config_json, checkpoint, hub,
)  # fmt: skip
