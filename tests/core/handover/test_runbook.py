"""The document handed over: complete, cited, and careful with the word "works"."""

from __future__ import annotations

from dataclasses import replace

from triage.core.causes import Cause, Disposition, Origin, Remedy
from triage.core.config import Config, SetFlag
from triage.core.diagnosis import Advice, Decoy, Diagnosis, Exc, Frame, Root, Suspect
from triage.core.evidence import Difference, Evidence, Piece
from triage.core.handover.actions import diff_commands
from triage.core.handover.confirmation import Confirmation, Exchange
from triage.core.handover.document import (
    Block,
    Bullets,
    Code,
    Figure,
    Paragraph,
    Ref,
    Runbook,
    Section,
    Table,
    with_text,
)
from triage.core.handover.faults import in_series
from triage.core.handover.investigation import Investigation
from triage.core.handover.judged import Assumption
from triage.core.handover.runbook import build_runbook
from triage.core.search.recommend import recommend
from triage.core.trials import Entry, FailingSet, Item, Problem, Seen


def keys(*names: str) -> frozenset[str]:
    return frozenset(names)


PROBLEM = Problem(
    name="pair",
    baseline=Config.of({"model-path": "/models/x", "tp-size": "8"}),
    items=(
        Item(key="a", change=SetFlag("a", "4"), weight=1),
        Item(key="b", change=SetFlag("b", True), weight=2),
    ),
)
OLD = "serve --model-path /models/x --tp-size 8 --a 4 --b\n"
NEW = "serve --model-path /models/x --tp-size 8 --b\n"
FAILED = Entry(
    number=2,
    items=keys("a", "b"),
    seen=Seen.FAILS,
    signature="boom",
    cause="boom",
    title="It goes boom",
    phase="graph-capture",
    seconds=12.14,
)
JOURNAL = (
    Entry(number=1, items=keys(), seen=Seen.STARTS, phase="serving", seconds=20.0),
    FAILED,
    Entry(number=3, items=keys("b"), seen=Seen.STARTS, searching="boom", seconds=21.0),
    replace(
        FAILED,
        number=4,
        items=keys("a"),
        signature="hush",
        cause="hush",
        title="It hangs",
        searching="boom",
    ),
)
DIAGNOSIS = Diagnosis(
    source="trials/002/server.log",
    outcome="failed",
    phase="graph-capture",
    cause="boom",
    title="It goes boom.",
    confidence="high",
    ranks=("TP3",),
    ranks_total=8,
    root=Root(line=44, offset=900, rank="TP3", time=None, text="TypeError: `None` | boom"),
    traceback=Exc(
        exception="TypeError",
        message="boom",
        frames=(Frame(file="x.py", line=7, function="capture"),),
    ),
    cascade=(61, 60),
    teardown=(70,),
    decoys=(Decoy(line=50, why="advice that any RuntimeError gets"),),
    suspects=(Suspect(flag="a", value="4", why="its frame is in the traceback"),),
    remedies=(
        Advice(say="Lower it", changes=(), disposition="lossy", cost="speed", evidence="modelled"),
    ),
)
CONFIRMED = Confirmation(
    config=Config(),
    ready_s=33.0,
    exchanges=(Exchange(prompt="Hello", answers=("world", "world")),),
    folder="trials/005",
)


def investigation(
    journal: tuple[Entry, ...] = JOURNAL,
    confirmation: Confirmation | None = None,
    causes: tuple[Cause, ...] = (),
) -> Investigation:
    return Investigation(
        problem=PROBLEM,
        journal=journal,
        recommendation=recommend(PROBLEM, journal, causes),
        diagnosis=DIAGNOSIS,
        confirmation=confirmation,
        causes=causes,
        old_command=OLD,
        new_command=NEW,
        assumptions=(Assumption(say="The fork does not set b by itself.", evidence="its source"),),
        reported=("It was fast there.",),
    )


def section(book: Runbook, title: str) -> tuple[Block, ...]:
    (blocks,) = (s.blocks for s in book.sections if s.title == title)
    return blocks


def all_text(book: Runbook) -> str:
    said: list[str] = []

    def collect(text: str) -> str:
        said.append(text)
        return text

    with_text(book, collect)
    return "\n".join(said)


def simulated(provenance: str = "recorded") -> tuple[Entry, ...]:
    return tuple(replace(e, simulated=True, provenance=provenance) for e in JOURNAL)


def test_sections_come_in_the_order_in_which_a_reader_asks() -> None:
    assert [s.title for s in build_runbook(investigation()).sections] == [
        "Cause",
        "Faults in series",
        "Minimal failing sets",
        "Trials",
        "The change",
        "Price",
        "Proof",
        "How to undo it",
        "When to escalate",
        "What is assumed",
        "What is not shown",
        "Next steps",
        "Appendix: environment and commands",
    ]


def test_the_summary_is_three_sentences() -> None:
    book = build_runbook(investigation())
    assert book.summary == (
        "The launch with a 4 and b on top of the baseline failed in phase graph-capture, on TP3 "
        "of 8 ranks: It goes boom (boom).",
        "4 trials in 65 s found 2 minimal failing sets of 2 different failures: {a} (hush) and "
        "{a, b} (boom).",
        "Proposed: keep b; drop a 4; started in trial 3; not confirmed yet.",
    )
    assert dict(book.facts) == {
        "cause": "boom (high confidence)",
        "phase": "graph-capture",
        "ranks": "TP3 of 8 ranks",
        "failing sets": "{a}; {a, b}",
        "proposal": "keep b; drop a 4",
        "proof": "started in trial 3; not confirmed yet",
    }


def test_a_failure_that_hides_a_later_one_is_said_to_lie_in_series_with_it() -> None:
    (said, *_) = section(build_runbook(investigation()), "Faults in series")
    assert isinstance(said, Paragraph)
    assert said.text.startswith(
        "Two faults in series: {a, b} fails in graph-capture (boom), before it can reach "
        "graph-capture, where {a} alone fails (hush)."
    )


def test_sets_of_one_failure_or_side_by_side_are_not_in_series() -> None:
    def failing(*names: str, sign: str, phase: str) -> FailingSet:
        return FailingSet(
            items=keys(*names), signature=sign, cause=sign, title="", phase=phase, entry=1
        )

    inner = failing("a", sign="late", phase="graph-capture")
    outer = failing("a", "b", sign="early", phase="weight-load")
    assert in_series((inner, outer)) == ((outer, inner),)
    assert in_series((inner, failing("b", sign="early", phase="weight-load"))) == ()
    assert in_series((inner, failing("a", "b", sign="late", phase="graph-capture"))) == ()
    assert in_series((inner, failing("a", "b", sign="later", phase="serving"))) == ()


def test_what_is_known_of_a_cause_comes_with_the_test_that_tells() -> None:
    causes = (
        Cause(
            id="boom",
            title="",
            origins=(Origin(say="A bad kernel", basis="report", look="r", sources=("s",)),),
            discriminator="launch once without b.",
            escalate="it moves.",
        ),
    )
    book = build_runbook(investigation(causes=causes))
    blocks = section(book, "Faults in series")
    assert (
        Table(("what", "how it is known", "how to tell"), (("A bad kernel", "report, s", "r"),))
        in blocks
    )
    assert blocks[-1] == Paragraph("The one test that would discriminate: launch once without b.")
    (steps,) = section(book, "When to escalate")
    assert isinstance(steps, Bullets)
    assert "boom: it moves." in steps.items


def test_the_cause_cites_its_line_and_what_misleads() -> None:
    causes = (Cause(id="boom", title="It goes boom", means="A field stays empty."),)
    blocks = section(build_runbook(investigation(causes=causes)), "Cause")
    assert blocks == (
        Paragraph("boom (high confidence): It goes boom."),
        Paragraph("A field stays empty."),
        Paragraph("The line that this rests on, of rank TP3:"),
        Code("> 44: TypeError: `None` | boom", "log"),
        Ref("trials/002/server.log", 44, "the line in the raw log"),
        Paragraph("Innermost frames of the traceback (TypeError), the last one raised:"),
        Code("x.py:7 capture"),
        Paragraph("These lines mislead:"),
        Bullets(("line 50: advice that any RuntimeError gets",)),
        Paragraph(
            "Further lines that are not the reason: 2 lines of consequences (from line 60), "
            "1 line of the shutdown (from line 70)."
        ),
        Paragraph("Before the search, suspicion fell on these flags:"),
        Bullets(("a: its frame is in the traceback; the search confirmed it",)),
    )


def test_an_unknown_failure_gives_its_fingerprint() -> None:
    told = Diagnosis(source="x", outcome="failed", fingerprint="9f3a")
    book = build_runbook(replace(investigation(), diagnosis=told))
    assert section(book, "Cause") == (
        Paragraph("No known cause; the failure's fingerprint is 9f3a."),
    )


def test_failing_sets_are_a_table() -> None:
    table = section(build_runbook(investigation()), "Minimal failing sets")[1]
    assert table == Table(
        ("set", "failure", "phase", "trial", "minimal", "basis"),
        (
            ("{a}", "It hangs (hush)", "graph-capture", "4", "yes", "launches"),
            ("{a, b}", "It goes boom (boom)", "graph-capture", "2", "yes", "launches"),
        ),
    )


def test_each_trial_is_a_row_with_its_verdict() -> None:
    blocks = section(build_runbook(investigation()), "Trials")
    assert blocks[0] == Paragraph("Verdicts are about the failure under search; at first boom.")
    figure = blocks[1]
    assert isinstance(figure, Figure)
    assert figure.table == Table(
        ("trial", "on top of the baseline", "verdict", "failure", "phase", "s", "basis"),
        (
            ("1", "nothing", "STARTS", "", "serving", "20.0", "launched"),
            ("2", "a 4, b", "SAME_FAILURE", "boom", "graph-capture", "12.1", "launched"),
            ("3", "b", "STARTS", "", "unknown", "21.0", "launched"),
            ("4", "a 4", "OTHER_FAILURE", "hush", "graph-capture", "12.1", "launched"),
        ),
    )


def test_recorded_and_assumed_trials_are_kept_apart() -> None:
    journal = simulated()
    journal = (*journal[:3], replace(journal[3], provenance="assumed"))
    book = build_runbook(investigation(journal))
    _, recorded, note, assumed = section(book, "Trials (simulated)")
    assert isinstance(recorded, Figure)
    assert isinstance(assumed, Table)
    assert [row[0] for row in recorded.table.rows] == ["1", "2", "3"]
    assert note == Paragraph("Assumed, not recorded from any launch:")
    assert [(row[0], row[-1]) for row in assumed.rows] == [("4", "assumed")]
    (ledger,) = section(book, "What is assumed (simulated)")
    assert isinstance(ledger, Table)
    assert ("The answers of trials 4.", "an assumed entry", "no") in ledger.rows


def test_the_change_is_shown_as_a_diff_and_to_paste() -> None:
    blocks = section(build_runbook(investigation()), "The change")
    assert blocks[0] == Table(
        ("what", "setting", "why"),
        (
            ("keep", "model-path /models/x", "part of the baseline, which started"),
            ("keep", "tp-size 8", "part of the baseline, which started"),
            ("keep", "b", "part of what started in trial 3"),
            (
                "drop",
                "a 4",
                "in the failing set {a}: It hangs (trial 4); in the failing set {a, b}: It goes "
                "boom (trial 2)",
            ),
        ),
    )
    assert section(build_runbook(investigation()), "Price") == (
        Paragraph("2 of 3 of what was wanted is kept, by weight."),
        Table(
            ("what", "setting", "price"),
            (("drop", "a 4", "not known: no launch here measured what it brings"),),
        ),
    )
    assert blocks[2] == Code(
        "--- wanted\n+++ proposed\n@@ -1 +1 @@\n"
        "-serve --model-path /models/x --tp-size 8 --a 4 --b\n"
        "+serve --model-path /models/x --tp-size 8 --b",
        "diff",
    )
    assert blocks[-1] == Code("serve --model-path /models/x --tp-size 8 --b", "sh")


def test_a_long_command_is_compared_flag_by_flag() -> None:
    old = "python -m server " + " ".join(f"--flag-{n} some-value" for n in range(8))
    new = old.replace(" --flag-3 some-value", "")
    assert diff_commands(old, new).splitlines()[3:] == [
        "   --flag-0 some-value",
        "   --flag-1 some-value",
        "   --flag-2 some-value",
        "-  --flag-3 some-value",
        "   --flag-4 some-value",
        "   --flag-5 some-value",
        "   --flag-6 some-value",
    ]
    assert diff_commands(old, old) == ""


def test_without_a_confirmation_nothing_is_said_to_work() -> None:
    book = build_runbook(investigation())
    assert "works" not in all_text(book)
    assert section(book, "Proof") == (
        Paragraph("The proposal started in trial 3."),
        Paragraph("It is not confirmed: no launch of it has answered generations yet. To do that:"),
        Code("triage confirm", "sh"),
    )


def test_a_confirmation_allows_to_say_that_it_works() -> None:
    blocks = section(build_runbook(investigation(confirmation=CONFIRMED)), "Proof")
    assert blocks[1] == Paragraph(
        "The proposed configuration works: it was launched (trials/005), was ready after 33 s, "
        "and gave the same answer twice to each prompt at temperature 0."
    )
    assert blocks[2] == Table(
        ("prompt", "first answer", "second answer", "agree"), (("Hello", "world", "world", "yes"),)
    )


def test_answers_that_differ_do_not_confirm() -> None:
    differ = replace(CONFIRMED, exchanges=(Exchange(prompt="Hello", answers=("world", "moon")),))
    book = build_runbook(investigation(confirmation=differ))
    assert "works" not in all_text(book)
    assert section(book, "Proof")[1] == Paragraph(
        "Not confirmed (trials/005): the two answers at temperature 0 do not agree. It was ready "
        "after 33 s."
    )


def test_empty_answers_and_a_server_that_never_came_up_do_not_confirm() -> None:
    assert not replace(CONFIRMED, exchanges=(Exchange(prompt="x", answers=("", "")),)).confirmed
    assert not replace(CONFIRMED, exchanges=()).confirmed
    assert not replace(CONFIRMED, ready_s=None).confirmed
    assert not replace(CONFIRMED, reason="it died").confirmed
    assert CONFIRMED.confirmed


def test_whatever_is_simulated_says_so_everywhere() -> None:
    shown = replace(CONFIRMED, simulated=True)
    book = build_runbook(investigation(simulated(), shown))
    assert book.title == "Runbook: pair (simulated)"
    assert all(s.title.endswith("(simulated)") for s in book.sections)
    first = section(book, "What happened (simulated)")[0]
    assert isinstance(first, Paragraph)
    assert first.text.startswith("The launches in this document are simulated")
    said = section(book, "Proof (simulated)")[1]
    assert isinstance(said, Paragraph)
    assert said.text.startswith("Simulated: the proposed configuration works")


def test_a_real_investigation_does_not_say_simulated() -> None:
    assert "simulated" not in all_text(build_runbook(investigation(confirmation=CONFIRMED)))


def test_undo_gives_the_old_command_and_the_baseline() -> None:
    blocks = section(build_runbook(investigation()), "How to undo it")
    assert [b for b in blocks if isinstance(b, Code)] == [
        Code(OLD.rstrip("\n"), "sh"),
        Code("--model-path /models/x --tp-size 8", "sh"),
    ]


def test_the_recipes_own_words_are_kept_as_assumed_and_reported() -> None:
    book = build_runbook(investigation())
    (assumed,) = section(book, "What is assumed")
    assert isinstance(assumed, Table)
    assert assumed.head == ("assumed", "on which evidence", "verified")
    assert assumed.rows[0] == ("The fork does not set b by itself.", "its source", "no")
    assert section(book, "What is not shown")[-2:] == (
        Paragraph("Reported by others, and neither measured nor checked here:"),
        Bullets(("It was fast there.",)),
    )


def test_speed_is_never_said_to_be_shown() -> None:
    (unshown, *_) = section(
        build_runbook(investigation(confirmation=CONFIRMED)), "What is not shown"
    )
    assert isinstance(unshown, Bullets)
    assert unshown.items[0].startswith("Speed: no launch here measured throughput")
    assert unshown.items[1].startswith("That it holds under load")


def test_next_steps_name_remedies_that_nobody_tried() -> None:
    causes = (
        Cause(id="boom", title="", remedies=(Remedy(say="not shown: filled in already"),)),
        Cause(
            id="hush",
            title="",
            remedies=(Remedy(say="Set {flag} to 1.", disposition=Disposition.SAFE),),
        ),
    )
    book = build_runbook(investigation(causes=causes))
    assert section(book, "Next steps") == (
        Bullets(
            (
                "Confirm the proposal: triage confirm",
                "Suggested against boom: Lower it (lossy, costs: speed, evidence: modelled).",
                "Suggested against hush: Set <flag> to 1 (safe).",
            )
        ),
    )


def test_without_a_working_configuration_there_is_nothing_to_paste_or_undo() -> None:
    journal = (replace(FAILED, number=1, items=keys()),)
    book = build_runbook(investigation(journal))
    assert section(book, "The change") == (
        Paragraph(
            "No configuration is proposed. The baseline itself fails (boom): the fault is not in "
            "what was added to it."
        ),
    )
    assert "How to undo it" not in [s.title for s in book.sections]
    assert "Proof" not in [s.title for s in book.sections]


def test_equal_investigations_give_equal_documents() -> None:
    assert build_runbook(investigation()) == build_runbook(investigation())


def test_a_section_without_blocks_is_left_out() -> None:
    book = build_runbook(replace(investigation(), diagnosis=None))
    assert Section("Cause", ()) not in book.sections
    assert "Cause" not in [s.title for s in book.sections]


def test_a_suspect_that_the_search_cleared_is_said_to_be() -> None:
    suspects = (Suspect(flag="a", value="4", why="w"), Suspect(flag="b", value=True, why="w"))
    told = Diagnosis(source="x", outcome="failed", cause="boom", suspects=suspects)
    journal = (*JOURNAL[:3], replace(FAILED, number=4, items=keys("a")))
    found = Investigation(
        problem=PROBLEM,
        journal=journal,
        recommendation=recommend(PROBLEM, journal),
        diagnosis=told,
    )
    blocks = section(build_runbook(found), "Cause")
    assert blocks[-1] == Bullets(
        ("a: w; the search confirmed it", "b: w; the search cleared it of this failure")
    )


def test_what_the_proposal_does_already_is_no_next_step() -> None:
    cause = Cause(
        id="boom",
        title="It goes boom",
        remedies=(
            Remedy(say="Run without a", unset=("a",)),
            Remedy(say="Lower it", set_flags=(("c", "1"),)),
        ),
    )
    plain = replace(investigation(causes=(cause,)), diagnosis=None)
    (steps,) = section(build_runbook(plain), "Next steps")
    assert isinstance(steps, Bullets)
    assert [step for step in steps.items if "boom" in step] == [
        "Suggested against boom: Lower it (manual)."
    ]


def test_commands_to_type_name_the_session() -> None:
    found = replace(investigation(), session="my dir/s", confirmation=None)
    (steps,) = section(build_runbook(found), "Next steps")
    assert isinstance(steps, Bullets)
    assert steps.items[0] == "Confirm the proposal: triage confirm 'my dir/s'"


def test_the_evidence_of_the_launches_that_matter_is_listed_a_line_a_file() -> None:
    kept = Evidence(
        pieces=(
            Piece(kind="exits", file="exit.json", say="9 processes; first to end: TP3"),
            Piece(kind="gpus", missing="none"),
        ),
        differences=(Difference(name="variable NCCL_DEBUG", before="INFO", after=None),),
    )
    told = replace(DIAGNOSIS, outside=("kernel: Out of memory: Killed process 43 (python)",))
    book = build_runbook(replace(investigation(), diagnosis=told, evidence=((3, kept),)))
    listed, _, changed = section(book, "Evidence")
    assert isinstance(listed, Table)
    assert listed.rows == (
        ("3", "exits", "trials/003/exit.json", "9 processes; first to end: TP3"),
        ("3", "gpus", "-", "not available: none"),
    )
    assert isinstance(changed, Table)
    assert changed.rows == (("variable NCCL_DEBUG", "INFO", "-"),)
    assert Bullets(told.outside) in section(book, "Cause")
    assert "Evidence" not in [s.title for s in build_runbook(investigation()).sections]
