"""JUnit, SARIF and annotations are what their readers take, whatever a log says."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from reports_data import NASTY, every_sort, failed, result

from triage.core.causes import Cause, Remedy
from triage.core.results import Comparison, Result, Status
from triage.render.annotations import summary, workflow_commands
from triage.render.comparison import comparison_text
from triage.render.junit import junit
from triage.render.sarif import MOST, sarif

CAUSES = {
    "graph-capture-oom": Cause(
        id="graph-capture-oom",
        title="Memory ran out",
        means="It ran out.",
        remedies=(Remedy(say="Lower it"),),
        sources=("https://github.com/a/b/issues/1",),
    )
}
LOCATION: dict[str, Any] = {
    "type": "object",
    "required": ["physicalLocation"],
    "additionalProperties": False,
    "properties": {
        "message": {"$ref": "#/definitions/message"},
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["uri", "uriBaseId"],
                    "properties": {
                        # A relative reference: no scheme, no leading slash, no way up.
                        "uri": {
                            "type": "string",
                            "pattern": r"^(?!/)(?![a-z]+:)(?!\.\.)[\w./%~-]+$",
                        },
                        "uriBaseId": {"enum": ["SRCROOT", "FILESYSTEM"]},
                    },
                },
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "additionalProperties": False,
                    "properties": {
                        "startLine": {"type": "integer", "minimum": 1},
                        "snippet": {"$ref": "#/definitions/message"},
                    },
                },
            },
        },
    },
}
# What the standard's schema demands of the parts that are used here, and no other key.
SARIF: dict[str, Any] = {
    "definitions": {
        "message": {
            "type": "object",
            "required": ["text"],
            "additionalProperties": False,
            "properties": {"text": {"type": "string", "minLength": 1}},
        }
    },
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 20,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "semanticVersion": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id", "shortDescription"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string"},
                                                "shortDescription": {"$ref": "#/definitions/message"},
                                                "fullDescription": {"$ref": "#/definitions/message"},
                                                "help": {"required": ["text"]},
                                                "helpUri": {"type": "string", "format": "uri"},
                                                "defaultConfiguration": {
                                                    "properties": {
                                                        "level": {
                                                            "enum": ["none", "note", "warning", "error"]
                                                        }
                                                    }
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "originalUriBaseIds": {"type": "object"},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "invocations": {
                        "type": "array",
                        "items": {"type": "object", "required": ["executionSuccessful"]},
                    },
                    "results": {
                        "type": "array",
                        "maxItems": 25_000,
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId", "locations", "partialFingerprints"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"$ref": "#/definitions/message"},
                                "locations": {"type": "array", "minItems": 1, "items": LOCATION},
                                "relatedLocations": {"type": "array", "items": LOCATION},
                                "partialFingerprints": {
                                    "type": "object",
                                    "required": ["triage/v1"],
                                    "additionalProperties": {"type": "string"},
                                },
                                "properties": {"type": "object"},
                            },
                        },
                    },
                },
            },
        },
    },
}  # fmt: skip


def parsed(results: tuple[Result, ...]) -> ET.Element:
    text = junit(results, "triage check logs")
    return ET.fromstring(text.encode("utf-8", "strict"))


def test_junit_has_one_case_a_log_and_its_counts_are_those_of_its_cases() -> None:
    root = parsed(every_sort())
    assert [suites.tag for suites in (root, *root)] == ["testsuites", "testsuite"]
    suite = root[0]
    cases = list(suite)
    assert [case.get("name") for case in cases] == list("abcdefghij")
    assert {case.tag for case in cases} == {"testcase"}
    for where in (root, suite):
        assert {k: int(where.get(k, "")) for k in ("tests", "failures", "errors", "skipped")} == {
            "tests": len(cases),
            "failures": len(suite.findall("testcase/failure")),
            "errors": len(suite.findall("testcase/error")),
            "skipped": len(suite.findall("testcase/skipped")),
        }
    kinds = {case.get("name"): [inner.tag for inner in case] for case in cases}
    assert kinds == {
        "a": ["failure"], "b": [], "c": ["skipped"], "d": ["failure"], "e": ["error"],
        "f": ["failure"], "g": [], "h": ["error"], "i": ["skipped"], "j": ["failure"],
    }  # fmt: skip


def test_junit_names_the_cause_as_the_type_and_the_line_of_the_log() -> None:
    cases = {case.get("name"): case for case in parsed(every_sort())[0]}
    failure = cases["f"].find("failure")
    assert failure is not None
    assert failure.get("type") == "graph-capture-oom"
    assert (cases["f"].get("file"), cases["f"].get("line")) == ("logs/f/server.log", "7")
    assert cases["f"].get("classname") == "logs.f"
    unknown = cases["j"].find("failure")
    assert unknown is not None
    assert unknown.get("type") == "unknown-failure"
    differs = cases["a"].find("failure")
    assert differs is not None
    assert (differs.text or "").startswith("cause: expected 'weight-oom'")


@given(st.text(max_size=60), st.text(max_size=20))
def test_junit_is_well_formed_and_keeps_the_text_whatever_it_holds(text: str, name: str) -> None:
    root = parsed((result(name, Status.UNCOMPARED, diagnosis=failed(f"x{text}y")),))
    case = root[0][0]
    assert case.get("name") == re.sub(
        "[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", name
    )
    assert (case[0].text or "").split("\n")[1].startswith("line 7 (TP1): x")


def test_sarif_keeps_to_the_standard() -> None:
    made = json.loads(json.dumps(sarif(every_sort(), CAUSES, "1.2.3")))
    assert [e.message for e in Draft7Validator(SARIF).iter_errors(made)] == []
    (run,) = made["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [
        "graph-capture-oom", "interrupted", "unknown-failure", "unreadable-case",
    ]  # fmt: skip
    assert rules[0]["fullDescription"] == {"text": "It ran out."}
    for one in run["results"]:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"]


def test_sarif_points_at_the_root_line_and_carries_the_fingerprint() -> None:
    made = sarif(every_sort(), CAUSES, "1")["runs"][0]["results"]
    by_log = {
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]: one for one in made
    }
    one = by_log["logs/f/server.log"]
    assert one["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert one["partialFingerprints"] == {"triage/v1": "v1:0123456789ab"}
    assert one["relatedLocations"][0]["physicalLocation"]["region"] == {"startLine": 8}
    assert by_log.keys() == {f"logs/{name}/server.log" for name in "adefhj"}


def test_a_log_outside_the_folder_is_relative_to_the_file_system() -> None:
    log = Result(name="x", place="/srv/a b/ü.log", status=Status.UNCOMPARED, diagnosis=failed())
    made = sarif([log], CAUSES, "1")
    where = made["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert where == {"uri": "srv/a%20b/%C3%BC.log", "uriBaseId": "FILESYSTEM"}
    assert [e.message for e in Draft7Validator(SARIF).iter_errors(made)] == []


def test_sarif_stays_within_what_its_reader_takes_and_says_so() -> None:
    many = [result("a", Status.UNCOMPARED)] * (MOST + 3)
    run = sarif(many, CAUSES, "1")["runs"][0]
    assert len(run["results"]) == MOST
    (said,) = run["invocations"][0]["toolExecutionNotifications"]
    assert said["message"]["text"] == "3 results are left out."


def test_an_annotation_escapes_what_would_end_it() -> None:
    (line, *_) = workflow_commands([result("a,b:c", Status.UNCOMPARED)])
    assert line.startswith(
        "::error file=logs/a%2Cb%3Ac/server.log,line=7,title=graph-capture-oom in graph-capture::"
    )
    assert "100%25, x:y" in line
    assert "\n" not in line


@given(st.text(max_size=80))
def test_an_annotation_is_one_line_and_one_command(text: str) -> None:
    lines = workflow_commands([result(text, Status.UNCOMPARED, diagnosis=failed(text))])
    assert lines
    for line in lines:
        assert not {"\n", "\r"} & set(line)
        properties = re.fullmatch(r"::(?:error|notice) ([^:]*)::(.*)", line, re.S)
        assert properties is not None
        assert {p.partition("=")[0] for p in properties[1].split(",")} <= {"file", "line", "title"}


def test_at_most_ten_annotations_are_given_errors_first() -> None:
    one = workflow_commands([result("a", Status.UNCOMPARED)])
    assert [line.split()[0] for line in one] == ["::error", "::notice", "::notice", "::notice"]
    many = workflow_commands([result(str(n), Status.UNCOMPARED) for n in range(30)])
    assert len(many) == 10
    assert {line.split()[0] for line in many} == {"::error"}


def test_the_summary_has_a_row_for_each_log_that_is_not_in_order() -> None:
    text = summary(every_sort(), "triage check logs")
    rows = [line for line in text.splitlines() if line.startswith("| logs/")]
    assert [re.findall(r"logs/(\w)/", row)[0] for row in rows] == list("acdefhij")
    assert "10 logs: 2 in order, 4 failed, 2 error, 2 skipped." in text
    assert all(row.count(" | ") == 3 for row in rows)


def test_the_summary_is_cut_before_github_refuses_it() -> None:
    text = summary([result("a", Status.UNCOMPARED)] * 2000, "t")
    assert len(text.encode("utf-8", "replace")) < 1 << 20
    assert "1500 more rows are left out." in text


def test_the_text_names_each_difference_with_its_line() -> None:
    text = comparison_text(
        Comparison(folder="logs", results=every_sort()[:5], without=("x/server.log",))
    )
    assert text == (
        "5 cases: 1 as expected, 1 different, 1 unreadable, 1 marked as known miss, but as expected,"
        " 1 known to be missed\n\n"
        "a  logs/a/server.log:7\n"
        "  line 7: cause: expected 'weight-oom', found 'graph-capture-oom'\n"
        "  line 5: root.line: expected 5, found 7\n\n"
        "d  logs/d/server.log:7\n"
        "  as expected now; set known_miss to false\n\n"
        "e: cannot be read\n"
        "  case.yaml:3: no \ufffd YAML & such\n\n"
        "not compared, for there is no case.yaml beside it: x/server.log\n\n"
        "next: triage classify --explain logs/a/server.log"
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda r: junit(r, "s"),
        lambda r: json.dumps(sarif(r, CAUSES, "1")),
        workflow_commands,
        lambda r: summary(r, "t"),
    ],
)
def test_the_same_results_give_the_same_bytes(make: Any) -> None:
    assert make(every_sort()) == make(every_sort())
    assert NASTY not in str(make(every_sort()))
