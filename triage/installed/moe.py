"""Which MoE runners an engine's source registers for which all-to-all backends.

In:  the folder of the engine's source. Out: MoeSupport.
Not: importing it: decorators and branches are read from the syntax tree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from triage.core.inspection.facts import At, MoeSupport

_REGISTER = {
    "register_fused_func": "fused", "register_pre_permute": "pre", "register_post_permute": "post",
}  # fmt: skip
_SOURCES = ("layers/moe/**/*.py", "lora/**/*.py")
_SCHEMES = "layers/quantization/**/*.py"
# Dispatchers whose file is named otherwise than their backend.
_BACKENDS = {"moriep": "mori", "standard": "none"}
_SHARED = {"DeepEPLLDispatchOutput": "deepep_ll", "DeepEPNormalDispatchOutput": "deepep_normal"}
_FOREIGN = ("NPU", "Ascend", "XPU", "CPU", "Amx", "Hip", "ROCm")  # classes for other devices
MOST = 4 << 20  # bytes of a source file


def read_moe(root: Path) -> MoeSupport | str:
    """What is registered; or why that cannot be told from this source."""
    runner = root / "layers/moe/moe_runner/runner.py"
    tree = parsed(runner)
    if tree is None:
        return f"{runner} is not there, or is not what it was"
    tables: dict[str, dict[tuple[str, str], At]] = {"fused": {}, "pre": {}, "post": {}}
    for file in sorted({f for pattern in _SOURCES for f in root.glob(pattern)}):
        for table, pair, line in _registered(file):
            tables[table].setdefault(pair, At(_relative(file, root), line))
    values = _runner_values(root)
    coreless, known = _branches(tree, _relative(runner, root), values)
    if not tables["fused"] or not known:
        return "its MoE runners are registered in a way that is not known here"
    return MoeSupport(
        fused=tables["fused"],
        pre=tables["pre"],
        post=tables["post"],
        formats=dict(_formats(root)),
        coreless=coreless,
        known=known,
        schemes=dict(_schemes(root, values)),
    )


def parsed(file: Path) -> ast.Module | None:
    """The syntax tree of a file; None if it cannot be read or is none of this Python's."""
    try:
        if file.stat().st_size > MOST:
            return None
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _relative(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix()


def _registered(file: Path) -> Iterator[tuple[str, tuple[str, str], int]]:
    """(table, pair, line) of each call of a registering decorator with two literal names."""
    try:
        raw = file.read_bytes()
        if not any(name.encode() in raw for name in _REGISTER):
            return
    except OSError:
        return
    tree = parsed(file)
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Call(
                func=ast.Name(id=name),
                args=[ast.Constant(value=str(first)), ast.Constant(value=str(second))],
            ) if name in _REGISTER:
                yield _REGISTER[name], (first, second), node.lineno
            case _:
                pass


def _runner_values(root: Path) -> dict[str, str]:
    """Member -> value of the enumeration of runners (`MARLIN` -> `marlin`)."""
    return enum_members(root / "layers/moe/utils.py", "MoeRunnerBackend")


def enum_members(file: Path, name: str) -> dict[str, str]:
    """The members of an enumeration with their values as text, in order; a name for `auto()`."""
    tree = parsed(file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            return {
                target.id: str(part.value.value)
                if isinstance(part.value, ast.Constant)
                else target.id
                for part in node.body
                if isinstance(part, ast.Assign)
                for target in part.targets
                if isinstance(target, ast.Name) and target.id.isupper()
            }
    return {}


def _branches(
    tree: ast.Module, file: str, values: dict[str, str]
) -> tuple[dict[str, At], frozenset[str]]:
    """Runners without a core, each with the branch that says so; and all that have a branch."""
    coreless: dict[str, At] = {}
    known: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.If):
            continue
        named = [values.get(one.upper(), one) for one in _asks(node.test)]
        # Only branches that choose a core count.
        cores = [
            part for part in _own(node.body) if isinstance(part, ast.Assign) and _is_core(part)
        ]
        if not named or not cores:
            continue
        known |= set(named)
        if all(isinstance(part.value, ast.Constant) and part.value.value is None for part in cores):
            coreless |= {name: At(file, cores[0].lineno) for name in named}
    return coreless, frozenset(known)


def _asks(test: ast.expr) -> Iterator[str]:
    """`marlin` of `runner_backend.is_marlin()`, also within `or`."""
    for node in ast.walk(test):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="runner_backend"), attr=attr)):
                if attr.startswith("is_"):
                    yield attr.removeprefix("is_")
            case _:
                pass


def _own(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a branch and of those within it, but for what only LoRA has."""
    for part in body:
        yield part
        if isinstance(part, ast.If):
            lora = isinstance(part.test, ast.Name) and part.test.id == "lora_enabled"
            yield from _own([*([] if lora else part.body), *part.orelse])


def _is_core(part: ast.Assign) -> bool:
    match part.targets:
        case [ast.Attribute(attr="runner_core")]:
            return True
        case _:
            return False


def _formats(root: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Backend -> the formats that its dispatcher gives out."""
    members = enum_members(root / "layers/moe/token_dispatcher/base.py", "DispatchOutputFormat")
    for file in sorted((root / "layers/moe/token_dispatcher").glob("*.py")):
        if file.stem in ("base", "__init__"):
            continue
        tree = parsed(file)
        found: dict[str, None] = {}
        for node in ast.walk(tree) if tree else ():
            match node:
                case ast.Return(
                    value=ast.Attribute(value=ast.Name(id="DispatchOutputFormat"), attr=attr)
                ):
                    found[members.get(attr, attr.lower())] = None
                case ast.ImportFrom(names=names):
                    found |= {_SHARED[a.name]: None for a in names if a.name in _SHARED}
                case _:
                    pass
        if found:
            yield _BACKENDS.get(file.stem, file.stem), tuple(found)


def _schemes(
    root: Path, values: dict[str, str]
) -> Iterator[tuple[str, tuple[tuple[str, At], ...] | None]]:
    """File of a quantisation -> the runners that it makes; None if it chooses at run time."""
    for file in sorted(root.glob(_SCHEMES)):
        tree = parsed(file)
        made: list[tuple[str, At]] = []
        chosen = False
        for part in tree.body if tree else ():
            if not isinstance(part, ast.ClassDef) or any(x in part.name for x in _FOREIGN):
                continue
            for node in ast.walk(part):
                match node:
                    case ast.Call(func=ast.Name(id="MoeRunner"), args=[first, *_]):
                        match first:
                            case ast.Attribute(value=ast.Name(id="MoeRunnerBackend"), attr=attr):
                                name = values.get(attr, attr.lower())
                                made.append((name, At(_relative(file, root), node.lineno)))
                            case _:
                                chosen = True
                    case _:
                        pass
        if made or chosen:
            yield _relative(file, root), None if chosen else tuple(made)
