"""The published contract: docs/schema is current, real documents fit it, and others do not."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from triage.core.launch import Crashed, Hung, Interrupted, Outcome, Ready
from triage.errors import UsageError
from triage.recipe.schema import RecipeFile
from triage.render.knowledge_text import cause_document
from triage.session.logs import causes
from triage.yamlfile import parse_yaml, plain_yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/schema"
FILES = sorted(FOLDER.glob("*.json"))
CASES = ROOT / "fixtures/cases"
# Written by a tool for triage's own use; nobody else reads it.
PRIVATE = {"hardware", "models", "options", "flags", "constraints"}
# Far above what a command takes, so that it ends one that hangs and none on a busy machine.
PATIENCE_S = 600

# The baseline has `kept` and `gone`, and `level` at 1. A higher level fails, and so does a launch
# without `kept`; the variable and a launch without `gone` do no harm.
RECIPE = """\
schema: triage.recipe/1
name: contract
engine: replay
landscape: l.yaml
speed: 1000
baseline: {flags: {model-path: /m, kept: true, gone: true, level: 1}}
wanted:
  - {flag: level, value: 2}
  - {unset: kept}
  - {unset: gone}
  - {env: CONTRACT_MODE, value: "1"}
"""
FAILS = {
    "ends": "exception", "phase": "weight-load", "exception": "ValueError", "message": "it is wrong",
    "frames": [{"file": "server.py", "line": 7, "function": "load"}],
}  # fmt: skip


def landscape() -> dict[str, Any]:
    items = {"level": "2", "kept": True, "gone": True, "env:CONTRACT_MODE": "1"}
    present = [[k for n, k in enumerate(items) if bits >> n & 1] for bits in range(16)]
    return {
        "schema": "triage.landscape/1",
        "name": "contract",
        "flags": [
            {"flag": "model-path", "neutral": True},
            {"flag": "host", "default": "127.0.0.1", "neutral": True},
            {"flag": "port", "kind": "int", "default": 30000, "neutral": True},
            {"flag": "level", "default": "1"},
            {"flag": "kept", "kind": "switch"},
            {"flag": "gone", "kind": "switch"},
        ],
        "items": items,
        "seconds": {"process-spawn": 1, "weight-load": 1},
        "entries": [
            {
                "when": when,
                "provenance": "assumed",
                "source": "made up for this test",
                **(FAILS if "level" in when or "kept" not in when else {"ends": "starts"}),
            }
            for when in present
        ],
    }


def schema(name: str) -> Any:
    return json.loads((FOLDER / f"{name}-1.json").read_text())


def complaints(document: Any, name: str) -> list[str]:
    """Where and how a document departs from its schema."""
    found = Draft202012Validator(schema(name)).iter_errors(document)
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in found]


def fits(document: Any) -> str:
    """Assert that the document begins with its name and fits that schema; its name."""
    assert next(iter(document)) == "schema"
    name = re.fullmatch(r"triage\.([a-z]+)/1", document["schema"])
    assert name is not None
    assert complaints(document, name[1]) == []
    return name[1]


def nested(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every object within a document, itself first."""
    if isinstance(value, dict):
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        if isinstance(one, dict | list):
            yield from nested(one, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


@pytest.fixture(scope="module")
def maker() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import make_schemas
    finally:
        sys.path.pop(0)
    return make_schemas


def run_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "triage", *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Real documents by where they come from: a search, its confirmation, a single launch."""
    folder = tmp_path_factory.mktemp("contract")
    (folder / "l.yaml").write_text(json.dumps(landscape()))
    (folder / "r.yaml").write_text(RECIPE)
    (folder / "bad.sh").write_text("TOKEN=x docker run --rm image serve --model-path /m --tp 2\n")
    engine = [
        sys.executable,
        "-m",
        "triage.replay",
        "--landscape",
        "l.yaml",
        "--speed",
        "1000",
        "--",
    ]
    printed = {
        "bisect": (0, ["bisect", "r.yaml", "--session", "s"]),
        "plan": (0, ["plan", "s"]),
        "recommend": (0, ["recommend", "s"]),
        "confirm": (0, ["confirm", "s"]),
        "run": (11, ["run", "--session", "once", "--json", "--", *engine, "--model-path", "/m"]),
        "diff": (0, ["diff", "s:1", "s:2"]),
        "config": (0, ["config", "bad.sh"]),
        "causes": (0, ["causes", "list"]),
        "check": (0, ["causes", "check"]),
        "explain": (0, ["explain", "nonetype-capture-batch-field"]),
    }
    found = {}
    for name, (code, words) in printed.items():
        done = run_in(folder, *words, *([] if "--json" in words else ["--json"]))
        assert done.returncode == code, (name, done.stderr)
        assert done.stdout.count("\n") == 1, "one document on one line"
        found[name] = json.loads(done.stdout)
    for path in sorted(folder.glob("**/*.json")):
        found[str(path.relative_to(folder))] = json.loads(path.read_text())
    for number, line in enumerate((folder / "s/journal.jsonl").read_text().splitlines(), 1):
        found[f"s/journal.jsonl:{number}"] = json.loads(line)
    return found


def test_the_schemas_are_those_that_the_code_makes(maker: Any) -> None:
    made = maker.schemas()
    assert {path.name for path in FILES} == made.keys()
    for path in FILES:
        assert path.read_text() == made[path.name], f"{path.name}: run tools/make_schemas.py"


def test_every_document_that_the_code_names_is_published() -> None:
    text = "".join(path.read_text() for path in (ROOT / "triage").rglob("*.py"))
    named = set(re.findall(r"triage\.([a-z]+)/1", text))
    assert named - PRIVATE == {path.name.removesuffix("-1.json") for path in FILES} - {"cause-file"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_schema_says_that_it_is_generated_and_is_closed_and_described(path: Path) -> None:
    made = json.loads(path.read_text())
    assert next(iter(made)) == "$comment"
    assert made["$comment"].startswith("Generated by tools/make_schemas.py")
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(made)
    objects = [made, *made.get("$defs", {}).values()]
    for one in (part for part in objects if "properties" in part):
        assert one["additionalProperties"] is False
        assert all(key["description"] for key in one["properties"].values())


def test_the_diagnosis_of_every_recorded_case_fits() -> None:
    done = run_in(ROOT, "classify", "--json", str(CASES))
    diagnoses = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(diagnoses) == len(list(CASES.glob("*/case.yaml"))) > 50
    assert {fits(diagnosis) for diagnosis in diagnoses} == {"diagnosis"}


def test_every_cause_fits() -> None:
    assert {fits(cause_document(cause)) for cause in causes()} == {"cause"}


@pytest.mark.real
def test_everything_that_a_search_and_a_launch_print_and_store_fits(
    documents: dict[str, Any],
) -> None:
    names = {source: fits(document) for source, document in documents.items()}
    assert (
        names["bisect"] == names["recommend"] == names["s/recommendation.json"] == "recommendation"
    )
    assert names["confirm"] == names["s/confirmation.json"] == "confirmation"
    assert (
        names["run"]
        == names["s/diagnosis.json"]
        == names["s/trials/002/diagnosis.json"]
        == "diagnosis"
    )
    assert names["s/session.json"] == names["once/session.json"] == "session"
    assert names["s/journal.jsonl:1"] == "trial"
    assert (names["diff"], names["plan"]) == ("diff", "plan")
    assert (names["config"], names["causes"], names["check"], names["explain"]) == (
        "config", "causes", "check", "cause",
    )  # fmt: skip
    ends = [documents[source]["how"] for source, name in names.items() if name == "exit"]
    assert set(ends) == {"ready", "crashed"}


@pytest.mark.real
def test_the_search_shows_every_sort_of_choice(documents: dict[str, Any]) -> None:
    found = documents["bisect"]
    kept = {next(iter(c)) for c in found["keep"]}
    assert kept == {"flag", "env", "unset"}
    assert [c["flag"] for c in found["change"]] == ["level"]
    assert [c["flag"] for c in found["add"]] == ["kept"]


@pytest.mark.real
def test_a_document_without_a_key_or_with_a_foreign_one_or_a_wrong_type_is_refused(
    documents: dict[str, Any],
) -> None:
    optional = {
        ("session", "argv"),
        ("session", "cwd"),
        ("session", "origin"),
        ("session", "notes"),
        ("session", "ended"),
        ("recommendation", "proposals"),
        ("session", "machine"),
        ("session", "findings"),
    }
    names = {document["schema"]: document for document in documents.values()}
    assert len(names) == 15
    for full, document in names.items():
        name = full.split(".")[1].split("/")[0]
        check = Draft202012Validator(schema(name))
        for path in nested(document):
            broken = copy.deepcopy(document)
            part = at(broken, path)
            part["foreign-key"] = "text"
            if check.is_valid(broken):  # a map whose keys are the user's
                open_ones = {"flags", "env", "effective", "sources", "origin", "versions"}
                open_ones |= {"packages", "unavailable", "system", "variables"}
                # What a server says of itself is its own.
                assert path[-1] in open_ones or path[0] == "told", (name, path)
                continue
            del part["foreign-key"]
            for key, value in list(part.items()):
                part[key] = ["no"] if isinstance(value, dict) else {"no": [None]}
                assert not check.is_valid(broken), (name, *path, key)
                del part[key]
                assert check.is_valid(broken) is ((name, key) in optional), (name, *path, key)
                part[key] = value


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("recipe", "recipes/*.yaml"),
        ("landscape", "fixtures/landscapes/*.yaml"),
        ("case", "fixtures/cases/*/case.yaml"),
        ("cause-file", "triage/knowledge/causes/*.yaml"),
    ],
)
def test_every_input_file_of_the_repository_fits(name: str, pattern: str) -> None:
    files = sorted(ROOT.glob(pattern))
    assert files
    for path in files:
        # Through JSON: what YAML can write is what the schema is about.
        assert complaints(json.loads(json.dumps(plain_yaml(path))), name) == [], path


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ("nmae: x", ""),
        ("name: 'two words'", "name"),
        ("goal: worst", "goal"),
        ("budget: {trials: 0}", "budget/trials"),
        ("budget: {trials: many}", "budget/trials"),
        ("baseline: {}", "baseline"),
        ("pin: level", "pin"),
        ("wanted: [{flag: a, unset: b}]", "wanted/0"),
        ("wanted: [{value: 1}]", "wanted/0"),
        ("wanted: [{flag: a, weight: 0}]", "wanted/0/weight"),
        ("ranges: [{flag: a, from: 2, to: 1}]", "ranges/0"),
    ],
)
def test_the_schema_refuses_a_recipe_that_the_reader_refuses(
    tmp_path: Path, change: str, where: str
) -> None:
    key = change.split(":", maxsplit=1)[0]
    kept = re.sub(rf"(?m)^{key}:.*\n(?:  .*\n)*", "", RECIPE)
    path = tmp_path / "r.yaml"
    path.write_text(f"{kept}{change}\n")
    with pytest.raises(UsageError):
        parse_yaml(path.read_text(), "r.yaml", RecipeFile)
    assert any(line.startswith(f"{where}: ") for line in complaints(plain_yaml(path), "recipe"))


def test_a_landscape_entry_without_its_exception_is_refused() -> None:
    made = landscape()
    assert complaints(made, "landscape") == []
    failing = next(entry for entry in made["entries"] if entry["ends"] == "exception")
    del failing["exception"]
    assert complaints(made, "landscape") != []


@pytest.mark.parametrize(
    "outcome",
    [
        Ready(answer="Paris"),
        Crashed(exit_code=-9),
        Crashed(exit_code=None, fatal_line=7),
        Crashed(exit_code=None, reason="it answers no generation: HTTP 500: no"),
        Hung(silent_s=600.0, limit="graph-capture"),
        Interrupted(by="SIGTERM from outside"),
        None,
    ],
)
def test_every_way_in_which_a_launch_ends_fits(outcome: Outcome | None) -> None:
    how = type(outcome).__name__.lower() if outcome else "failed"
    document = {
        "schema": "triage.exit/1", "how": how, "outcome": asdict(outcome) if outcome else None,
        "exit_code": None, "seconds": 1.5, "pids": [7], "removed": ["/dev/shm/x"], "stuck": [],
        "said": ["JobState: FAILED"], "unseen": "",
        "processes": [
            {"pid": 7, "name": "sglang::scheduler_TP3", "rank": "TP3", "exit_code": -9,
             "seconds": 1.25, "by_us": False},
        ],
    }  # fmt: skip
    assert fits(document) == "exit"


def test_the_examples_of_the_page_are_real() -> None:
    page = (FOLDER / "README.md").read_text()
    diagnosis, trial = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", page, re.S))
    (command,) = re.findall(r"^`triage (.*)`, in `fixtures/cases`; exit code 10:$", page, re.M)
    done = run_in(CASES, *command.split())
    assert done.returncode == 10
    assert json.loads(done.stdout) == diagnosis
    assert fits(trial) == "trial"


def test_the_page_names_every_schema() -> None:
    page = (FOLDER / "README.md").read_text()
    assert set(re.findall(r"\(([a-z-]+-1\.json)\)", page)) == {path.name for path in FILES}
