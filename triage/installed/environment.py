"""Where a Python keeps its packages, and which there are, without running it.

In:  the path of a Python. Out: folders, package roots, versions.
Not: what stands in the packages (moe.py, plugins.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path

_FOLDERS = (
    "lib/python3*/site-packages", "lib64/python3*/site-packages",
    "local/lib/python3*/dist-packages", "lib/python3*/dist-packages", "lib/python3/dist-packages",
)  # fmt: skip
_PTH_LINES = 200
_CANONICAL = re.compile(r"[-_.]+")


def site_folders(python: Path) -> tuple[Path, ...]:
    """The folders in which this Python looks for packages, `.pth` files followed."""
    roots = [python.parent.parent]
    # A link outside of a virtual environment leads to the real installation.
    if not (roots[0] / "pyvenv.cfg").exists():
        roots.append(python.resolve().parent.parent)
    found = [f for root in roots for pattern in _FOLDERS for f in sorted(root.glob(pattern))]
    folders = [folder for folder in dict.fromkeys(found) if folder.is_dir()]
    more = [path for folder in folders for path in _from_pth(folder)]
    return tuple(dict.fromkeys([*folders, *more]))


def _from_pth(folder: Path) -> Iterator[Path]:
    """Folders that `.pth` files add, as editable installs do."""
    for file in sorted(folder.glob("*.pth")):
        try:
            lines = file.read_text(errors="replace").splitlines()[:_PTH_LINES]
        except OSError:
            continue
        for line in lines:
            if line and not line.startswith(("#", "import ", "import\t")):
                path = folder / line.strip()
                if path.is_dir():
                    yield path
    for file in sorted(folder.glob("__editable___*_finder.py")):
        yield from _from_finder(file)


def _from_finder(file: Path) -> Iterator[Path]:
    """Folders that hold the packages of an editable install's MAPPING."""
    try:
        tree = ast.parse(file.read_text(errors="replace"))
    except (OSError, SyntaxError, ValueError):
        return
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        value = getattr(node, "value", None)
        named = any(isinstance(t, ast.Name) and t.id == "MAPPING" for t in targets)
        if named and isinstance(value, ast.Dict):
            for path in value.values:
                if isinstance(path, ast.Constant) and isinstance(path.value, str):
                    yield Path(path.value).parent


def package_root(folders: Sequence[Path], name: str) -> Path | None:
    """The folder or file of a top-level module; None if there is none."""
    for folder in folders:
        for path in (folder / name, folder / f"{name}.py"):
            if path.exists():
                return path
        for path in folder.glob(f"{name}.*.so"):
            return path
    return None


def distributions(folders: Sequence[Path]) -> tuple[Distribution, ...]:
    """The installed distributions; of two of a name the first that Python would find."""
    context = DistributionFinder.Context(path=[str(folder) for folder in folders])
    found: dict[str, Distribution] = {}
    for one in MetadataPathFinder.find_distributions(context):
        try:
            name = canonical(str(one.metadata["Name"] or ""))
        except (OSError, ValueError, KeyError):
            continue
        if name:
            found.setdefault(name, one)
    return tuple(found.values())


def canonical(name: str) -> str:
    """A distribution's name as comparisons need it."""
    return _CANONICAL.sub("-", name).lower()
