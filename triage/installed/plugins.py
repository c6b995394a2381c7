"""The plugins that an engine would load, and whether their source allows it.

In:  the packages of a Python, folders for modules. Out: Plugin values.
Not: loading them: a module's imports and names are read from its syntax tree.

Source: `load_plugins_by_group` of SGLang 0.5.23: what fails to load is only logged.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path

from triage.core.inspection.facts import At, Plugin
from triage.installed.environment import package_root
from triage.installed.moe import parsed

GROUPS = ("sglang.srt.plugins", "sglang.srt.platforms")


def read_plugins(found: Sequence[Distribution], folders: Sequence[Path]) -> Iterator[Plugin]:
    """Every entry point of the engine's groups, with what keeps it from being loaded."""
    for distribution in found:
        try:
            points = list(distribution.entry_points)
            package = str(distribution.metadata["Name"])
        except (OSError, ValueError, KeyError):
            continue
        for point in points:
            if point.group in GROUPS:
                yield _plugin(point, package, folders)


def _plugin(point: EntryPoint, package: str, folders: Sequence[Path]) -> Plugin:
    module, _, attribute = point.value.partition(":")
    trouble, at = "", None
    algorithms: tuple[str, ...] = ()
    file = _module_file(module.strip(), folders)
    if file is None:
        trouble = f"there is no module {module.strip()}"
    elif file.suffix == ".py":
        tree = parsed(file)
        at = At(str(file))
        if tree is None:
            trouble = "its source cannot be parsed"
        else:
            algorithms = tuple(_algorithms(tree))
            trouble, line = _missing(tree, attribute.strip(), module.strip(), folders)
            at = At(str(file), line)
    return Plugin(
        group=point.group,
        name=point.name,
        value=point.value,
        package=package,
        trouble=trouble,
        at=at,
        algorithms=algorithms,
    )


def _module_file(module: str, folders: Sequence[Path]) -> Path | None:
    """The file of a dotted module, found as the import system would."""
    first, *rest = module.split(".")
    place = package_root(folders, first)
    for part in rest:
        if place is None or not place.is_dir():
            return None
        place = package_root([place], part)
    if place is not None and place.is_dir():
        inner = place / "__init__.py"
        return inner if inner.exists() else None
    return place


def _missing(
    tree: ast.Module, attribute: str, module: str, folders: Sequence[Path]
) -> tuple[str, int]:
    """What its import would stumble over, and the line: a module, or the name itself."""
    for name, line in _imports(tree):
        top = name.partition(".")[0]
        own = top == module.partition(".")[0]
        known = own or top in sys.stdlib_module_names or top in sys.builtin_module_names
        if not known and package_root(folders, top) is None:
            return f"it imports {top}, which is not installed", line
    name = attribute.partition(".")[0]
    if name and name not in _names(tree) and not _stars(tree):
        return f"its module has no {name}", 0
    return "", 0


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Modules that are imported when the module is; not those in functions, try or if."""
    for node in tree.body:
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, node.lineno) for alias in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name, node.lineno
            case _:
                pass


def _names(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in names}
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case _:
                pass
    return found


def _stars(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
        for node in tree.body
    )


def _algorithms(tree: ast.Module) -> Iterator[str]:
    """Names that the source registers by `SpeculativeAlgorithm.register("NAME", ...)`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="SpeculativeAlgorithm"), attr="register"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name.upper()
            case _:
                pass
