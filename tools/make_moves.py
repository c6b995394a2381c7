"""Write which resolved field SGLang's resolution moves because of which other fields.

In:  the source of an installed SGLang, read and never imported; the flag table of its version.
Out: triage/knowledge/moves/sglang-<version>.json: field -> the places that set it, with what
each place looks at before it does.
Not: whether a place was reached: that is what a diff or a launch shows.

    .venv/bin/python tools/make_moves.py .sglang/lib/python3.11/site-packages

A place is a `declare_resolution(..., field=value)`, a field in the dict that a provider
returns, or a row of MODEL_OVERRIDES. It looks at what stands in the conditions around it, in
returns before it, and in its value, through the function's own variables.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from triage.core.flags import FlagTable
from triage.knowledge import load_flag_table

FOLDER = Path(__file__).parents[1] / "triage/knowledge/moves"
SOURCES = ("arg_groups/**/*.py", "server_args.py")
# Helpers of the engine that read fields for their caller.
HELPERS = {
    "attn_dp_enabled_of": ("attn_dp_size",),
    "num_dp_ranks_of": ("dp_size", "attn_dp_size"),
    "attention_backends_of": (
        "attention_backend", "prefill_attention_backend", "decode_attention_backend",
    ),
    "is_attention_backend_not_set": ("attention_backend",),
}  # fmt: skip
# All of a module is reached through a field only: algorithms are found in a table by name.
MODULES = {"arg_groups/speculative_hook.py": frozenset({"speculative_algorithm"})}
DEPTH = 4
FEW = 8  # a place that looks at more says too little about each


class Places(ast.NodeVisitor):
    """Collects the places of one module."""

    def __init__(self, file: str, fields: frozenset[str]) -> None:
        self.file, self.fields = file, fields
        self.found: list[tuple[str, int, frozenset[str]]] = []  # field, line, what is looked at
        self._around: list[frozenset[str]] = []  # of the conditions around
        self._local: dict[str, frozenset[str]] = {}  # variable -> what its value looks at
        self._guards: frozenset[str] = frozenset()  # of the returns before
        self._function = ""
        # Function of this module -> what is looked at before each call, and the caller.
        self.calls: dict[str, list[tuple[frozenset[str], str]]] = {}
        self._in: dict[int, str] = {}  # place -> function

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A function has variables and conditions of its own."""
        kept = self._around, self._local, self._guards, self._function
        self._around, self._local, self._guards = [], {}, frozenset()
        self._function = node.name
        self.generic_visit(node)
        self._around, self._local, self._guards, self._function = kept

    def visit_Assign(self, node: ast.Assign) -> None:
        """A variable keeps what its value looked at; an item of a mapping may be a field."""
        self.generic_visit(node)
        for target in node.targets:
            match target:
                case ast.Name(id=name):
                    self._local[name] = self.reads(node.value).union(*self._around)
                case ast.Subscript(slice=ast.Constant(value=str(field))) if self._function:
                    self.place(field, node.lineno, node.value)
                case _:
                    pass

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """A variable looks at more."""
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            looked = self.reads(node.value).union(*self._around)
            self._local[node.target.id] = self._local.get(node.target.id, frozenset()) | looked

    def visit_If(self, node: ast.If) -> None:
        """What a condition looks at holds for both branches."""
        looked = self.reads(node.test)
        self._around.append(looked)
        for part in (*node.body, *node.orelse):
            self.visit(part)
        self._around.pop()
        if isinstance(node.body[-1], ast.Return) and len(node.body) == 1:
            self._guards |= looked

    def visit_Call(self, node: ast.Call) -> None:
        """A declaration, or a call of a function of this module."""
        self.generic_visit(node)
        name = _name(node.func)
        looked = self._guards.union(*self._around)
        self.calls.setdefault(name, []).append((looked, self._function))
        if name in ("run_hook", "run_post_process_pass") and node.args:
            for part in node.args[:2]:
                self.calls.setdefault(_name(part), []).append((looked, self._function))
        if name == "declare_resolution":
            for keyword in node.keywords:
                if keyword.arg:
                    self.place(keyword.arg, keyword.value.lineno, keyword.value)

    def visit_Dict(self, node: ast.Dict) -> None:
        """A mapping that a provider returns."""
        self.generic_visit(node)
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and self._function:
                self.place(key.value, value.lineno, value)

    def place(self, field: str, line: int, value: ast.expr) -> None:
        """The field is set here."""
        if field in self.fields:
            looked = self.reads(value).union(self._guards, *self._around)
            self._in[len(self.found)] = self._function
            self.found.append((field, line, looked))

    def finished(self) -> Iterator[tuple[str, int, frozenset[str]]]:
        """All places, each with what is looked at before its function is called, too."""
        for at, (field, line, looked) in enumerate(self.found):
            around = self._before(self._in[at], 0) | MODULES.get(self.file, frozenset())
            yield field, line, (looked | around) - {field}

    def _before(self, function: str, depth: int) -> frozenset[str]:
        calls = self.calls.get(function, []) if depth < DEPTH else []
        sets = [looked | self._before(caller, depth + 1) for looked, caller in calls]
        return frozenset.intersection(*sets) if sets else frozenset()

    def reads(self, node: ast.AST) -> frozenset[str]:
        """The fields that an expression looks at."""
        return frozenset(self._reads(node))

    def _reads(self, node: ast.AST) -> Iterator[str]:
        for part in ast.walk(node):
            match part:
                case ast.Attribute(attr=name) if name in self.fields:
                    yield name
                case ast.Name(id=name):
                    yield from self._local.get(name, ())
                case ast.Call(func=func):
                    yield from HELPERS.get(_name(func), ())
                case _:
                    pass


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def field_names(srt: Path, table: FlagTable) -> frozenset[str]:
    """All fields: those of the flags, and those that the engine orders in its dump."""
    known = {spec.field for spec in table.specs.values()}
    order = ast.parse((srt / "arg_groups/field_order.py").read_text())
    known |= {
        part.value
        for part in ast.walk(order)
        if isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and part.value.isidentifier()
    }
    return frozenset(known)


def collect(srt: Path, fields: frozenset[str]) -> dict[str, list[list[object]]]:
    """Field -> places: where, and the fields looked at; by name and in the order of the source."""
    moves: dict[str, dict[tuple[str, tuple[str, ...]], int]] = {}
    files: Iterable[Path] = sorted({f for pattern in SOURCES for f in srt.glob(pattern)})
    for file in files:
        name = file.relative_to(srt).as_posix()
        places = Places(name, fields)
        places.visit(ast.parse(file.read_text()))
        for field, line, looked in places.finished():
            if 0 < len(looked) <= FEW:
                # The same place is found once as a call and once within it.
                moves.setdefault(field, {}).setdefault((name, tuple(sorted(looked))), line)
    return {
        field: [[f"{name}:{line}", list(looked)] for (name, looked), line in places_.items()]
        for field, places_ in sorted(moves.items())
    }


def main(site: Path) -> None:
    info = next(site.glob("sglang-*.dist-info"))
    version = info.name.removeprefix("sglang-").removesuffix(".dist-info")
    srt, table = site / "sglang/srt", load_flag_table()
    if table.version != version:
        raise SystemExit(f"the flag table is of {table.version}, the engine is {version}")
    moves = collect(srt, field_names(srt, table))
    rows = ",\n".join(f'  "{field}": {json.dumps(places)}' for field, places in moves.items())
    head = {"schema": "triage.moves/1", "generated": "tools/make_moves.py", "version": version}
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"sglang-{version}.json"
    path.write_text(f'{json.dumps(head)[:-1]}, "moves": {{\n{rows}\n}}}}\n')
    print(f"{path}: {sum(map(len, moves.values()))} places of {len(moves)} fields")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
