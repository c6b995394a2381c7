"""Results as JUnit XML, one test case a log.

In:  results, and the name of the suite. Out: a document that Jenkins and GitLab read; the same
results give the same bytes, so no times are in it.
Not: writing it to a file (triage.session.reports).

A failure's type is the cause's id. Source: the testcase, failure, error and skipped elements of
the Jenkins xUnit schema; GitLab also shows the `file` of a test case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.core.results import Result
from triage.render.reported import Said, said

# XML 1.0 has no place for these, not even escaped.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"})
_ATTRIBUTE = _TEXT | str.maketrans({"\n": "&#10;", "\t": "&#9;"})


def junit(results: Sequence[Result], suite: str) -> str:
    """The document; text of logs is escaped, and what XML cannot hold is replaced."""
    told = [(result, said(result)) for result in results]
    counts = {
        "tests": len(told),
        "failures": sum(one.kind == "failed" for _, one in told),
        "errors": sum(one.kind == "error" for _, one in told),
        "skipped": sum(one.kind == "skipped" for _, one in told),
    }
    numbers = {name: str(count) for name, count in counts.items()}
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(_open("testsuites", {"name": "triage", **numbers}))
    lines.append("  " + _open("testsuite", {"name": suite, **numbers}))
    for result, one in told:
        lines += _case(result, one)
    lines += ["  </testsuite>", "</testsuites>"]
    return "\n".join(lines) + "\n"


def _case(result: Result, one: Said) -> list[str]:
    folder = result.place.rpartition("/")[0]
    names = {"classname": _class(folder), "name": result.name, "file": result.place}
    if result.line:
        names["line"] = str(result.line)
    body = _escape("\n".join(one.details), _TEXT)
    short = {"message": one.title or one.message}
    match one.kind:
        case "passed":
            return ["    " + _open("testcase", names)[:-1] + "/>"]
        case "skipped":
            inner = _open("skipped", {"message": one.message or one.title})[:-1] + "/>"
        case "failed":
            inner = _open("failure", {"type": one.rule, **short}) + body + "</failure>"
        case _:
            text = body or _escape(one.message, _TEXT)
            inner = _open("error", {"type": one.rule, **short}) + text + "</error>"
    return ["    " + _open("testcase", names), f"      {inner}", "    </testcase>"]


def _class(folder: str) -> str:
    """The folder as a class name: Jenkins groups by what stands before the last dot."""
    return ".".join(part.replace(".", "_") for part in folder.split("/") if part) or "triage"


def _open(name: str, attributes: dict[str, str]) -> str:
    words = (f'{key}="{_escape(value, _ATTRIBUTE)}"' for key, value in attributes.items())
    return f"<{name} {' '.join(words)}>"


def _escape(text: str, table: dict[int, str]) -> str:
    return _NO_XML.sub("\ufffd", text).translate(table)
