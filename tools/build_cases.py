"""Write the reconstructed cases of fixtures/cases from short descriptions.

In:  tools/cases/<subject>.yaml. Out: fixtures/cases/<subject>--<words>/{server.log,case.yaml}.
Not: recording real launches (record_cases.py), or asking the classifier what it thinks.

    .venv/bin/python tools/build_cases.py                # all of them (make cases)
    .venv/bin/python tools/build_cases.py -k oom         # those whose name has "oom" in it
    .venv/bin/python tools/build_cases.py -k oom --show  # print instead of writing

To add one, append to tools/cases/<cause-id>.yaml (fixtures/README.md lists the keys):

    - case: tp8-docker
      url: https://github.com/...
      tp: 8
      phase: graph-capture
      ranks: [3]
      frames: ['srt/models/deepseek_v2.py:3414:forward:hidden_states = self.model(']
      error: 'RuntimeError: CUDA error: ...'
      wrapped: true
      after: [peers-gloo]
      wrap: compose

Equal descriptions give equal bytes. The expectation comes from the description and from
where the builder printed the root; what the text says is nobody's word but the report's.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import case_startup
import case_vllm
import yaml
from case_failure import fail, finish
from case_spec import Spec, load_specs
from case_text import Log, Printed
from case_wraps import physical

from triage.core.log.ranks import topology
from triage.core.phases import order

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTIONS = ROOT / "tools/cases"
CASES = ROOT / "fixtures/cases"
REMEDIES: dict[str, Any] = yaml.safe_load((ROOT / "tools/case_remedies.yaml").read_text())
MADE_UP = "Built from a description: the message is the report's, all lines around it are modelled."


def specs(folder: Path = DESCRIPTIONS) -> list[Spec]:
    """Every description, in order of files and within them."""
    found = [spec for path in sorted(folder.glob("*.yaml")) for spec in load_specs(path)]
    names = [spec.name for spec in found]
    if double := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two cases with one name: {', '.join(sorted(double))}")
    return found


def build(spec: Spec) -> tuple[bytes, str]:
    """The log and the text of case.yaml."""
    log, lines = _lines(spec)
    content, number, texts = physical(log, lines)
    if spec.root:
        number = next((n for n, text in enumerate(texts, 1) if spec.root in text), 0)
        if not number:
            raise ValueError(f"{spec.name}: no line with {spec.root!r}")
    case = {
        "schema": "triage.case/1",
        "source": {
            "kind": "reconstructed",
            "engine": "vllm" if spec.style == "vllm" else "sglang",
            "version": spec.version,
            "note": " ".join(filter(None, (spec.note.strip(), MADE_UP))),
        },
        "expect": _expected(spec, lines, number),
        "known_miss": spec.known_miss,
    }
    if spec.url:
        case["source"]["url"] = spec.url  # type: ignore[index]  # a mapping, not the schema's name
    text = yaml.safe_dump(case, sort_keys=False, allow_unicode=True, width=100)
    return content, text


def _lines(spec: Spec) -> tuple[Log, list[Printed]]:
    starts = [spec] * spec.restarts
    if spec.generations:
        starts = [spec.generation({**changes, "generations": ()}) for changes in spec.generations]
    lines: list[Printed] = []
    log = Log(spec)
    told = False
    for number, start in enumerate(starts):
        log = Log(start, number)
        _start(log)
        lines += [replace(line, root=line.root and not told) for line in log.lines]
        told |= any(line.root for line in log.lines)
    return log, _cut(spec, lines)


def _start(log: Log) -> None:
    spec = log.spec
    reached = dict.fromkeys(range(spec.world), spec.phase)
    for tag, phase in spec.reach.items():
        for index, name in enumerate(spec.tags):
            if tag in (name, *name.split()):
                reached[index] = phase
    if spec.phase != "container":
        (case_vllm if spec.style == "vllm" else case_startup).start(log, reached)
    if spec.fails or spec.before:
        fail(log)
    else:
        finish(log)


def _cut(spec: Spec, lines: list[Printed]) -> list[Printed]:
    """The lines that are left where the head of the log is gone."""
    if spec.cut is None:
        return lines
    failure = next((n for n, line in enumerate(lines) if line.failure), 0)
    return lines[max(0, failure - int(spec.cut)) :]


def _expected(spec: Spec, lines: list[Printed], number: int) -> dict[str, Any]:
    kind = next((word for word in ("healthy", "hung", "interrupted")
                 if spec.name.startswith(f"{word}--")), "failed")  # fmt: skip
    named = kind == "failed" and not spec.name.startswith("unknown--")
    if named and not spec.fails and not spec.generations:
        kind = "hung"  # nothing goes wrong but that it goes no further
    cause = spec.subject if named else None
    expected: dict[str, Any] = {
        "outcome": kind,
        "cause": cause if spec.cause == "" else spec.cause,
        "phase": spec.phase,
    }
    if kind == "failed":
        expected["ranks"] = _ranks(spec)
    if number:
        root = next((line for line in lines if line.root), None)
        text = spec.root or (root.text if root else "")
        expected["root"] = {"line": number, "text": _piece(text)}
    if order(spec.phase) > order("config-load") and spec.cut is None and spec.style != "vllm":
        expected["ranks_total"] = spec.world
    expected["engine"] = {"name": "vllm" if spec.style == "vllm" else "sglang"}
    told = {key: value for key, value in {**expected, **spec.expect}.items() if value != "-"}
    ways = REMEDIES.get(str(told["cause"]))
    return {**told, "remedy": ways} if ways and "remedy" not in spec.expect else told


def _piece(text: str) -> str:
    """A part of the line that survives every wrapping: no head, no quotes, not too long."""
    if text.startswith("[") and "] " in text[:60]:
        text = text.partition("] ")[2]
    if text.startswith("(") and "] " in text[:120]:
        text = text.partition("] ")[2]
    return text.split("\r")[0][:70].rstrip()


def _ranks(spec: Spec) -> list[str]:
    failing = spec.failing
    if not failing or spec.tags == ("",):
        return ["main"]
    if len(failing) == spec.world and spec.world > 1:
        return ["all"]
    return [topology(spec.tags[index]) or "main" for index in failing]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-k", default="", help="only cases whose name has this in it")
    parser.add_argument("--show", action="store_true", help="print the logs, write nothing")
    options = parser.parse_args()
    count = 0
    for spec in specs():
        if options.k not in spec.name:
            continue
        log, case = build(spec)
        count += 1
        if options.show:
            print(f"==== {spec.name}\n{case}")
            sys.stdout.buffer.write(log)
            continue
        folder = CASES / spec.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "server.log").write_bytes(log)
        (folder / "case.yaml").write_text(case)
    print(f"{count} cases", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
