"""Write the JSON Schema of every document that triage prints, stores or reads.

In:  the models of tools/schemas/ for output; the models that read input files.
Out: docs/schema/<name>-1.json, one a document; the same code gives the same bytes.
Not: making documents (triage.render) or checking them (tests/contracts/test_schemas.py).

    .venv/bin/python tools/make_schemas.py

An output document is described in tools/schemas/, key by key. An input file is
described by the model that reads it; what a key means stands in tools/schemas/inputs.py. A
key without a description is an error, and so is a description without a key.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from schemas.advice import Advice
from schemas.ci import Audit, Clusters, Comparison, Draft
from schemas.diagnosis import Diagnosis
from schemas.diff import Diff
from schemas.doctor import Doctor
from schemas.evidence import Environment, Evidence, Served
from schemas.inputs import INPUT_KEYS, RULES, SAME
from schemas.inspection import Inspection
from schemas.issue import Issue
from schemas.knowledge import Cause, Causes, Check, Command
from schemas.mending import Mending
from schemas.parts import Document
from schemas.probe import ProbeResult, Probes
from schemas.proposals import Proposals
from schemas.resolution import Resolution
from schemas.search import Confirmation, Plan, Recommendation, Trial
from schemas.session import Exit, Session

from triage.knowledge.cases import CaseFile
from triage.knowledge.schema import CauseFile
from triage.recipe.schema import RecipeFile
from triage.replay.landscape import Landscape

FOLDER = Path(__file__).parents[1] / "docs/schema"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ITSELF = "tools/make_schemas.py"

OUTPUTS: dict[str, tuple[type[Document], str]] = {
    "diagnosis": (Diagnosis, "triage/render/documents.py"),
    "trial": (Trial, "triage/render/search_documents.py"),
    "plan": (Plan, "triage/render/plan_document.py"),
    "proposals": (Proposals, "triage/render/proposals.py"),
    "recommendation": (Recommendation, "triage/render/search_documents.py"),
    "confirmation": (Confirmation, "triage/render/confirmation.py"),
    "advice": (Advice, "triage/render/advice_document.py"),
    "mending": (Mending, "triage/render/mending.py"),
    "probe": (ProbeResult, "triage/render/probe_document.py"),
    "probes": (Probes, "triage/render/probe_document.py"),
    "session": (Session, "triage/session/search.py and once.py"),
    "doctor": (Doctor, "triage/render/doctor_documents.py"),
    "exit": (Exit, "triage/launch/supervise.py"),
    "evidence": (Evidence, "triage/render/evidence_document.py"),
    "environment": (Environment, "triage/session/evidence.py"),
    "served": (Served, "triage/session/evidence.py"),
    "cause": (Cause, "triage/render/knowledge_text.py"),
    "causes": (Causes, "triage/cli/causes.py"),
    "check": (Check, "triage/cli/causes.py"),
    "comparison": (Comparison, "triage/render/comparison.py"),
    "diff": (Diff, "triage/render/diff_document.py"),
    "inspection": (Inspection, "triage/render/inspection_text.py"),
    "clusters": (Clusters, "triage/render/cluster_text.py"),
    "draft": (Draft, "triage/cli/causes.py"),
    "audit": (Audit, "triage/render/audit_text.py"),
    "config": (Command, "triage/cli/config.py"),
    "issue": (Issue, "triage/render/issue_document.py"),
    "resolution": (Resolution, "triage/render/resolution_text.py"),
}
INPUTS: dict[str, tuple[type[BaseModel], str]] = {
    "recipe": (RecipeFile, "triage/recipe/schema.py"),
    "landscape": (Landscape, "triage/replay/landscape.py"),
    "case": (CaseFile, "triage/knowledge/cases.py"),
    "cause-file": (CauseFile, "triage/knowledge/schema.py"),
}


class _Plain(GenerateJsonSchema):
    """Without a title for each key: it would only repeat the key."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False


def schemas() -> dict[str, str]:
    """File name -> content, of every document.

    Raises:
        ValueError: a key lacks a description, or a description its key.
    """
    made = {f"{name}-1.json": _output(name, *how) for name, how in OUTPUTS.items()}
    unused = {(model, key) for model, keys in INPUT_KEYS.items() for key in keys}
    for name, (model, source) in INPUTS.items():
        made[f"{name}-1.json"] = _input(name, model, source, unused)
    if unused:
        raise ValueError(f"descriptions of keys that no input file has: {sorted(unused)}")
    return {
        name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in made.items()
    }


def _output(name: str, model: type[Document], source: str) -> dict[str, Any]:
    """A document that triage writes: every key is there, unless the model gives a default."""
    body = _body(model, "serialization")
    for part in _objects(body, model).values():
        part["required"] = [
            key for key, value in part["properties"].items() if "default" not in value
        ]
        for value in part["properties"].values():
            value.pop("default", None)
    body["properties"] = {"schema": {"const": f"triage.{name}/1"}, **body["properties"]}
    body["required"].insert(0, "schema")
    return _finished(name, body, model, source, "Its keys: tools/schemas/.")


def _input(
    name: str, model: type[BaseModel], source: str, unused: set[tuple[str, str]]
) -> dict[str, Any]:
    """A file that triage reads; takes the descriptions that it needs out of `unused`."""
    body = _body(model, "validation")
    for part_name, part in _objects(body, model).items():
        meant = {**_shared(part_name), **INPUT_KEYS.get(part_name, {})}
        for key in part["properties"].keys() & meant.keys():
            part["properties"][key]["description"] = meant[key]
            unused.discard((part_name, key))
        part.update(RULES.get(part_name, {}))
    return _finished(name, body, model, source, "The reader checks more than a schema can say.")


def _shared(part_name: str) -> dict[str, str]:
    """Key -> description, of the document whose keys this part of an input file shares."""
    model = SAME.get(part_name)
    if model is None:
        return {}
    fields = model.model_fields.items()
    return {key: field.description for key, field in fields if field.description}


def _body(model: type[BaseModel], mode: JsonSchemaMode) -> dict[str, Any]:
    return model.model_json_schema(schema_generator=_Plain, mode=mode)


def _objects(body: dict[str, Any], model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """The objects with named keys: the document under its model's name, and its parts."""
    parts = {model.__name__: body, **body.get("$defs", {})}
    return {name: part for name, part in parts.items() if "properties" in part}


def _finished(
    name: str, body: dict[str, Any], model: type[BaseModel], source: str, note: str
) -> dict[str, Any]:
    """The schema with its head; every key of it is described."""
    if "schema" in body["properties"]:
        body["properties"]["schema"]["description"] = "Name and version of the document; first key."
    parts = _objects(body, model)
    for part_name, part in parts.items():
        for key, value in part["properties"].items():
            # Pydantic leaves a description out that its part has too.
            part_of = parts.get(value.get("$ref", "").removeprefix("#/$defs/"), {})
            text = value.get("description") or part_of.get("description")
            if not text:
                raise ValueError(f"{name}: {part_name}.{key} has no description")
            value["description"] = " ".join(text.split())
    for part in (body, *body.get("$defs", {}).values()):
        part.pop("title", None)
    head = {
        "$comment": f"Generated by {ITSELF}; do not edit. The document: {source}. {note}",
        "$schema": DIALECT,
        "$id": f"urn:triage:{name}:1",
        "title": f"triage.{name}/1" if "schema" in body["properties"] else f"{name}, version 1",
        "description": " ".join(body.pop("description").split()),
    }
    shared = {"$defs": body.pop("$defs")} if "$defs" in body else {}
    return head | body | shared


def main(folder: Path = FOLDER) -> None:
    """Write them all, and remove what is no document any more."""
    folder.mkdir(parents=True, exist_ok=True)
    made = schemas()
    for old in folder.glob("*.json"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{folder}: {len(made)} schemas")


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:]))
