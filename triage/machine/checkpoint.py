"""A checkpoint folder: its JSON files, and weight files whose header is held against their size.

In:  the value of --model-path. Out: Model, Hub.
Not: reading a tensor.

Source: the safetensors format: 8 bytes length, a JSON header, and the data that it describes.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from triage.core.machine.facts import Fact, Unavailable
from triage.core.machine.models import Hub, Model, WeightFile

_JSON = ("config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json",
         "model.safetensors.index.json", "quantize_config.json",
         "hf_quant_config.json")  # fmt: skip
_INDEX = "model.safetensors.index.json"
_LONGEST_HEADER = 100_000_000  # Source: safetensors: a longer one is refused
_PARSED = 64 << 20  # tokenizer.json of any model is far smaller
_POINTER = b"version https://git-lfs"
_PAGES = (b"<!doctype", b"<html", b"<?xml")


def model(name: str, env: Mapping[str, str], cwd: Path = Path()) -> Fact[Model]:
    """The checkpoint that a command names: a folder, or a hub id that is in the local cache."""
    folder = cwd / Path(name).expanduser()
    if not folder.is_dir():
        cached = snapshot(name, env)
        if cached is None:
            return Unavailable(f"{name} is no folder on this machine")
        folder = cached
    broken, config = {}, Unavailable(f"{folder} has no config.json")
    found: Fact[Mapping[str, object]] = config
    for file in _JSON:
        path = folder / file
        if not path.exists():
            continue
        parsed = _parsed(path)
        if isinstance(parsed, str):
            broken[file] = parsed
            if file == "config.json":
                found = Unavailable(f"{path}: {parsed}")
        elif file == "config.json":
            found = parsed
    weights = tuple(
        _weights(path)
        for pattern in ("*.safetensors", "*.gguf", "*.bin", "*.pt")
        for path in sorted(folder.glob(pattern))
        if path.name not in ("training_args.bin",)
    )
    return Model(
        name=name,
        folder=str(folder),
        config=found,
        broken_json=broken,
        weights=weights,
        missing=_missing(folder),
    )


def _parsed(path: Path) -> Mapping[str, object] | str:
    """The JSON object of a file, or what is wrong with it."""
    try:
        if path.stat().st_size > _PARSED:
            return {}
        raw = path.read_bytes()
    except OSError as error:
        return str(error.strerror)
    if not raw.strip():
        return "it is empty"
    if raw.startswith(_POINTER):
        return "it is a pointer of Git LFS"
    if raw.lstrip()[:9].lower().startswith(_PAGES):
        return "it is a web page"
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return str(error)
    return value if isinstance(value, dict) else {}


def _weights(path: Path) -> WeightFile:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(64)
            fault = _fault(path, size, head)
            if not fault and path.suffix == ".safetensors":
                fault = _header_fault(size, struct.unpack("<Q", head[:8])[0], file)
    except OSError as error:
        return WeightFile(name=path.name, size=0, fault=str(error.strerror))
    return WeightFile(name=path.name, size=size, fault=fault)


def _fault(path: Path, size: int, head: bytes) -> str:
    """What the first bytes already show."""
    if head.startswith(_POINTER):
        return "a pointer of Git LFS, not the weights"
    if head.lstrip()[:9].lower().startswith(_PAGES):
        return "a web page, not the weights"
    if path.suffix == ".safetensors" and size < 8:  # noqa: PLR2004
        return f"{size} bytes: cut"
    if path.suffix == ".gguf" and head[:4] != b"GGUF":
        return "no GGUF header"
    return ""


def _header_fault(size: int, length: int, file: object) -> str:
    """What a safetensors header says against the size of its file."""
    if length > _LONGEST_HEADER:
        return f"header of {length} bytes: this is no safetensors file"
    if 8 + length > size:
        return f"cut: {size} bytes, and the header alone has {length}"
    file.seek(8)  # type: ignore[attr-defined]  # an open binary file
    try:
        header = json.loads(file.read(length))  # type: ignore[attr-defined]
        ends = [
            int(entry["data_offsets"][1])
            for name, entry in header.items()
            if name != "__metadata__"
        ]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return "the header cannot be read"
    want = 8 + length + max(ends, default=0)
    if size < want:
        return f"cut: {size} of {want} bytes"
    if size > want:
        return f"{size - want} bytes more than its header describes"
    return ""


def _missing(folder: Path) -> tuple[str, ...]:
    """Files that the index names and the folder lacks."""
    try:
        index = json.loads((folder / _INDEX).read_bytes())
        names = {str(name) for name in index["weight_map"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()
    return tuple(sorted(name for name in names if not (folder / name).exists()))


def _cache(env: Mapping[str, str]) -> Path:
    """Where huggingface_hub keeps what it downloaded."""
    if env.get("HF_HUB_CACHE"):
        return Path(env["HF_HUB_CACHE"])
    home = env.get("HF_HOME") or str(Path(env.get("HOME") or "/") / ".cache/huggingface")
    return Path(home) / "hub"


def snapshot(name: str, env: Mapping[str, str]) -> Path | None:
    """The newest folder of a hub id in the local cache."""
    if name.count("/") != 1 or name.startswith(("/", ".")):
        return None
    base = _cache(env) / f"models--{name.replace('/', '--')}"
    try:
        main = (base / "refs/main").read_text().strip()
        if (base / "snapshots" / main).is_dir():
            return base / "snapshots" / main
    except OSError:
        pass
    try:
        found = sorted((base / "snapshots").iterdir(), key=lambda p: p.stat().st_mtime)
    except OSError:
        return None
    return found[-1] if found else None


def hub(name: str, env: Mapping[str, str], cwd: Path = Path(), *, ask: bool) -> Fact[Hub]:
    """What is known of a model that is named by its hub id; `ask` sends one request to the hub."""
    from triage.core.doctor.facts import NO_HUB

    if (
        (cwd / Path(name).expanduser()).exists()
        or name.count("/") != 1
        or name.startswith(("/", "."))
    ):
        return NO_HUB
    cached = snapshot(name, env)
    token = env.get("HF_TOKEN") or env.get("HUGGING_FACE_HUB_TOKEN") or ""
    offline = any(
        env.get(n, "").lower() in ("1", "on", "yes", "true")
        for n in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )
    answer: Fact[int] = Unavailable("the hub was not asked", "triage doctor --deep RECIPE")
    if ask and not offline:
        answer = _answer(name, env, token)
    return Hub(
        name=name,
        cached=cached is not None,
        complete=cached is not None and _complete(cached),
        offline=offline,
        token=bool(token),
        answer=answer,
    )


def _complete(folder: Path) -> bool:
    """Whether a snapshot has a config, its weights and no download that was broken off."""
    if not (folder / "config.json").exists() or _missing(folder):
        return False
    weights: Sequence[Path] = [*folder.glob("*.safetensors"), *folder.glob("*.bin")]
    unfinished = folder.parents[1] / "blobs"
    return bool(weights) and not any(unfinished.glob("*.incomplete"))


def _answer(name: str, env: Mapping[str, str], token: str) -> Fact[int]:
    """HTTP status of the model's config.json."""
    import urllib.error
    import urllib.request

    base = env.get("HF_ENDPOINT") or "https://huggingface.co"
    if not base.startswith(("http://", "https://")):
        return Unavailable(f"HF_ENDPOINT={base} is no address")
    request = urllib.request.Request(  # noqa: S310  only http and https, see above
        f"{base.rstrip('/')}/{name}/resolve/main/config.json", method="HEAD"
    )
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return int(error.code)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return Unavailable(f"the hub cannot be reached: {reason}", os.fspath(base))
