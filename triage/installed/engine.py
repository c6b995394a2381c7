"""One installed engine, read from disk.

In:  the Python that runs it. Out: Installed.
Not: judging what is found (triage.core.inspection).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution
from pathlib import Path

from triage.core.inspection.facts import At, Installed, MoeSupport, Wanted
from triage.installed.environment import canonical, distributions, package_root, site_folders
from triage.installed.moe import enum_members, parsed, read_moe
from triage.installed.plugins import read_plugins

_ALGORITHMS = "speculative/spec_info.py"
_ASSERTS = "entrypoints/engine.py"
_EXACT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([0-9][\w.]*)")
# Packages whose version decides whether kernels load.
_WATCHED = frozenset({"flashinfer-python", "sglang-kernel", "torch", "sgl-deep-gemm"})


def installed_engine(python: Path, extra: Sequence[Path] = ()) -> Installed:
    """The SGLang that this Python would import; `extra` folders come first, as PYTHONPATH does.

    Nothing is run and nothing is written.
    """
    folders = (*(folder for folder in extra if folder.is_dir()), *site_folders(python))
    package = package_root(folders, "sglang")
    root = package / "srt" if package is not None and package.is_dir() else None
    found = distributions(folders)
    packages = {canonical(str(one.metadata["Name"])): one.version or "" for one in found}
    if root is None or not root.is_dir():
        return Installed(
            python=str(python), packages=packages, why=f"{python} has no package sglang"
        )
    unread: dict[str, str] = {}
    moe = read_moe(root)
    if isinstance(moe, str):
        unread |= {"moe-pair": moe, "moe-quantization": moe}
        moe = MoeSupport()
    algorithms = _algorithms(root)
    if not algorithms:
        unread["speculative-algorithm"] = f"{_ALGORITHMS} does not name the algorithms"
    own = next((one for one in found if canonical(str(one.metadata["Name"])) == "sglang"), None)
    return Installed(
        python=str(python),
        root=str(root),
        version=packages.get("sglang", ""),
        moe=moe,
        algorithms=algorithms,
        plugins=tuple(read_plugins(found, folders)),
        packages=packages,
        wanted=tuple(_wanted(root, own)),
        unread=unread,
    )


def _algorithms(root: Path) -> dict[str, At]:
    """Names that the engine takes, with the place of the enumeration."""
    file = root / _ALGORITHMS
    members = enum_members(file, "SpeculativeAlgorithm")
    tree = parsed(file)
    line = next(
        (
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef) and node.name == "SpeculativeAlgorithm"
        ),
        0,
    ) if tree else 0  # fmt: skip
    registry = parsed(file.with_name("spec_registry.py"))
    aliases = [name for one in (tree, registry) if one for name in _aliases(one)]
    names = [*members, *aliases]
    return {name.upper(): At(_ALGORITHMS, line) for name in names}


def _aliases(tree: ast.Module) -> Iterator[str]:
    """Further names that stand in a constant of reserved aliases."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if "ALIAS" in name:
                for part in ast.walk(value):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value
            case _:
                pass


def _wanted(root: Path, own: Distribution | None) -> Iterator[Wanted]:
    """What the engine asserts at its start, then what its metadata pins."""
    tree = parsed(root / _ASSERTS)
    asserted = set()
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Call(
                func=ast.Name(id="assert_pkg_version"),
                args=[ast.Constant(value=str(name)), ast.Constant(value=str(version)), *_],
            ):
                asserted.add(canonical(name))
                yield Wanted(
                    package=canonical(name), version=version, exact=False,
                    at=At(_ASSERTS, node.lineno),
                )  # fmt: skip
            case _:
                pass
    for line in (own.requires or ()) if own else ():
        if (found := _EXACT.match(line)) and ";" not in line:
            name = canonical(found[1])
            if name in _WATCHED - asserted:
                yield Wanted(
                    package=name, version=found[2], exact=True, at=At("package sglang (metadata)")
                )
