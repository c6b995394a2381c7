"""`triage runbook` as a user meets it: the founding case's pages, pages of causes, a handbook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import Run, is_an_error

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.real


def said(session: Path) -> str:
    """The Markdown on one line, with its escapes taken off."""
    return " ".join(re.sub(r"\\(.)", r"\1", (session / "runbook.md").read_text()).split())


def test_two_faults_in_series_are_stated(founding: Path) -> None:
    assert (
        "Two faults in series: {ep-size, enable-nccl-nvls} fails in flashinfer-autotune "
        "(cublas-mla-absorb-bmm), before it can reach graph-capture, where {ep-size} alone fails "
        "(nonetype-capture-batch-field)."
    ) in said(founding)


@pytest.mark.parametrize("cause", ["cublas-mla-absorb-bmm", "nonetype-capture-batch-field"])
def test_what_is_known_to_cause_each_fault_is_stated_with_the_test_that_tells(
    founding: Path, cause: str
) -> None:
    text = said(founding)
    known = text.split(f"What is known to bring {cause} about:")[1].split("What is known to")[0]
    assert "| what | how it is known | how to tell |" in known
    assert known.count("| report, https://github.com/") >= 2
    assert "The one test that would discriminate: one launch with" in known


def test_each_fault_has_the_test_of_its_own_knowledge_file(founding: Path) -> None:
    from triage.session.logs import causes

    for cause in causes():
        if cause.id in ("cublas-mla-absorb-bmm", "nonetype-capture-batch-field"):
            assert cause.discriminator
            assert cause.discriminator in said(founding)


def test_why_ep_is_not_worth_the_next_hours_is_stated(founding: Path) -> None:
    text = said(founding).split("## Worth another try?")[1].split("## When to escalate")[0]
    assert "EP is not worth the next hours at this concurrency (1 to 64)" in text
    assert "the same all-reduce as TP, so it saves no communication" in text
    assert "Whole experts on a rank add imbalance" in text
    assert "Basis: counting bytes" in text
    assert "What would change this: a concurrency of 512 and more" in text


def test_the_advice_stands_in_the_runbook_with_gain_chance_and_hours(founding: Path) -> None:
    from triage.session.advise import advise_session

    text = said(founding).split("## Worth another try?")[1].split("## When to escalate")[0]
    advice = advise_session(founding)
    assert advice.decision.kind == "pivot"
    assert advice.decision.say in text
    assert "| ep-size 8 | it fails |" in text
    for what, why in advice.decision.stop:
        assert f"Not {what}: {why}." in text
    for change in advice.decision.changed_by:
        assert change in text


def test_the_claim_of_a_memory_bound_is_not_shown(founding: Path) -> None:
    text = said(founding).split("## What is not shown")[1]
    row = re.search(r"\| The workload is HBM-bandwidth-bound[^|]*\| ([^|]*) \| ([^|]*) \|", text)
    assert row is not None
    assert row[1] == "not shown"
    assert "7 to 24 % of the bandwidth" in row[2]


def test_the_statements_are_the_recipes_and_the_knowledges_not_the_codes(founding: Path) -> None:
    folders = ("triage/core/handover", "triage/session", "triage/cli")
    code = "\n".join(p.read_text() for folder in folders for p in (ROOT / folder).rglob("*.py"))
    for word in ("HBM-bandwidth-bound", "imbalance", "DDTREE", "7 to 24", "num_token_non_padded"):
        assert word in said(founding)
        assert word not in code, f"{word} is knowledge, and stands in code"


def test_the_page_says_the_same_as_the_markdown(founding: Path) -> None:
    import html

    page = html.unescape(re.sub(r"<[^>]+>", " ", (founding / "runbook.html").read_text()))
    flat = " ".join(page.split())
    for statement in (
        "Two faults in series",
        "EP is not worth the next hours",
        "not shown",
        "simulated",
        "When to escalate",
    ):
        assert statement in flat, statement
    assert (founding / "runbook.html").read_text().count("Content-Security-Policy") == 1


def test_names_stay_until_it_is_shared(
    triage: Run, founding: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import shutil

    shutil.copytree(founding, tmp_path / "s")
    recipe = tmp_path / "s/recipe.yaml"
    recipe.write_text(
        recipe.read_text().replace(
            "reported:", 'reported:\n  - "seen by ops@gpu-7.corp at 10.20.30.40"'
        )
    )
    assert triage("runbook", "s").returncode == 0
    for name in ("runbook.md", "runbook.html"):
        assert "10.20.30.40" in (tmp_path / "s" / name).read_text()
    assert triage("runbook", "s", "--share").returncode == 0
    for name in ("runbook.md", "runbook.html"):
        text = (tmp_path / "s" / name).read_text()
        assert "10.20.30.40" not in text
        assert "gpu-7" not in text.replace("\\", "")
        assert "stand-ins" in text or name == "runbook.md"


def test_output_is_written_in_the_form_that_its_name_tells(
    triage: Run, founding: Path, tmp_path: Path
) -> None:
    page = tmp_path / "a.html"
    assert triage("runbook", str(founding), "-o", str(page)).stdout.strip() == str(page)
    assert page.read_text().startswith("<!doctype html>")
    assert triage("runbook", str(founding), "-o", "-").stdout.startswith("# Runbook: ")


def test_a_cause_has_a_general_runbook(triage: Run, tmp_path: Path) -> None:
    done = triage("runbook", "--cause", "http-port-in-use")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Runbook: ")
    for title in ("What it means", "First checks", "What helps", "When to escalate"):
        assert f"## {title}\n" in done.stdout
    page = tmp_path / "x.html"
    triage("runbook", "--cause", "http-port-in-use", "-o", str(page))
    assert page.read_text().startswith("<!doctype html>")


def test_a_handbook_leads_from_its_index_to_every_cause_and_back(
    triage: Run, tmp_path: Path
) -> None:
    from triage.session.logs import causes

    done = triage("runbook", "--all", "book")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["book/README.md", "book/index.html"]
    ids = {cause.id for cause in causes()}
    folder = tmp_path / "book"
    for index, suffix in (("README.md", ".md"), ("index.html", ".html")):
        text = (folder / index).read_text()
        linked = set(re.findall(rf'[("]([a-z0-9_-]+{suffix})[)"]', text))
        assert linked - {index} == {f"{name}{suffix}" for name in ids}
    for page in folder.glob("*.html"):
        if page.name != "index.html":
            assert '<a href="index.html">' in page.read_text()
        for target in re.findall(r'href="([a-z0-9_-]+\.html)"', page.read_text()):
            assert (folder / target).is_file(), (page, target)


def test_what_excludes_each_other_is_refused(triage: Run) -> None:
    is_an_error(triage("runbook", "s", "--cause", "http-port-in-use"), 2, "exclude each other")
    is_an_error(triage("runbook", "--all", "d", "-o", "x"), 2, "--all names the folder")
    is_an_error(
        triage("runbook", "--cause", "http-port-in-us"), 2, "there is no cause 'http-port-in-us'"
    )
