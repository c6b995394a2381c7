"""What the keys of input files mean, and what their readers demand beyond types.

In:  nothing. Out: INPUT_KEYS, SAME, RULES, by the name of the reader's model.
Not: the types of the keys (the models that read the files).
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from schemas.diagnosis import Diagnosis
from schemas.knowledge import Cause, CauseRemedy, Culprits

# What the keys of input files mean, by model.
INPUT_KEYS: dict[str, dict[str, str]] = {
    "RecipeFile": {
        "name": "Short name of the investigation.",
        "engine": "What is launched; replay: the simulated engine.",
        "engine_version": "Version whose flags are known.",
        "launch": "How the server is started.",
        "baseline": "The configuration that is known to start.",
        "wanted": "What is wanted on top of the baseline.",
        "repairs": "Changes that may be added if they are needed.",
        "ranges": "Values that may be lowered.",
        "pin": "Flags that are never touched; with a value, every launch has it.",
        "requires": "Items that make sense only together with another.",
        "not_both": "Pairs of items that exclude each other.",
        "goal": "best: the heaviest that starts; first: any; all: every failing set.",
        "noise": "How far a single launch can be trusted.",
        "budget": "What the search may spend.",
        "confirm": "What a confirmation asks of the server.",
        "workload": "What the server is for; read by triage advise.",
        "assumptions": "What is taken for granted; printed in the runbook.",
        "reported": "What others measured; printed as reported, never as measured here.",
        "worth": "Whether items are worth more hours; printed in the runbook.",
        "not_shown": "Claims of others that the evidence does not show; printed as not shown.",
        "landscape": "Path of the replay engine's landscape, relative to this file.",
        "speed": "How many times faster than life the replay engine plays.",
        "rungs": "What may answer a trial: static (rules that triage knows), resolution (the engine"
        " is asked, nothing is launched), twin (a launch with a smaller model), full (a launch)."
        " Without full nothing is launched in full, and nothing is shown to start.",
    },
    "AssumptionPart": {
        "say": "What is taken for granted.",
        "evidence": "What speaks for it.",
        "verified": "Whether it was verified, and how.",
    },
    "WorthPart": {
        "item": "Flag or env:NAME.",
        "say": "The judgement.",
        "because": "Its reasons.",
        "basis": "What kind of evidence they are: modelled, measured, reported.",
        "revisit": "What would change the judgement.",
    },
    "ClaimPart": {
        "claim": "What is claimed.",
        "why": "Why the evidence does not show it.",
        "would_show": "What would show it.",
    },
    "LaunchPart": {
        "target": "Where it is launched: as a process, a systemd unit, a container, a Slurm job.",
        "unit": "For systemd: the unit whose settings each launch takes over.",
        "container": "For container: the words of docker or podman run, up to the image.",
        "nodes": "For slurm: how many nodes, with one task on each.",
        "devices": "For several launches at the same time on one machine: the GPUs of each.",
        "sbatch": "For slurm: further options of sbatch.",
        "command": "The words before the server's flags.",
        "env": "Variable name -> value for every launch.",
        "cwd": "Folder to start in, relative to this file.",
        "patience": "silent, total, or a phase -> how long it may be quiet (total: last), "
        "in seconds or as 30s, 10m, 2h.",
        "takes": "How long a launch takes that starts, and one that fails, for the forecast.",
    },
    "BaselinePart": {
        "flags": "Flag, in any spelling that the server takes -> value; true for a switch.",
        "env": "Variable name -> value.",
    },
    "WantedPart": {
        "flag": "A flag to set, in any spelling that the server takes.",
        "env": "A variable to set.",
        "unset": "A flag of the baseline to leave out, or env:NAME.",
        "value": "The value; none for a switch.",
        "weight": "How much it is wanted, against the other items.",
    },
    "RepairPart": {
        "flag": "A flag that may be set.",
        "value": "The value; none for a switch.",
        "cost": "What it gives up.",
        "price": "What it costs, in the unit of the wanted weights.",
    },
    "RangePart": {
        "flag": "A flag with a number.",
        "from": "The value wanted.",
        "to": "The lowest value that is acceptable.",
        "step": "The distance between two values to try.",
        "price": "What the whole way costs, in the unit of the wanted weights; a step its share.",
    },
    "PinPart": {
        "flag": "Spelling of the flag.",
        "value": "Its value in every launch; true, or left out, for a switch.",
    },
    "RequiresPart": {
        "flag": "Key of an item.",
        "needs": "Key of another item, or a flag of the baseline.",
    },
    "FigurePart": {
        "concurrency": "Sequences at once.",
        "tokens_per_s": "Output tokens a second of all of them.",
        "source": "Who measured it.",
        "without": "Flags of the baseline that the measured server did not have.",
    },
    "WorkloadPart": {
        "gpu": "The GPU, as nvidia-smi names it or short; else that of this machine.",
        "gpus": "How many; 0: as many as tp-size and pp-size take.",
        "input_tokens": "Tokens of a prompt.",
        "output_tokens": "Tokens of an answer.",
        "figures": "Throughputs that were measured, to hold against the model.",
    },
    "BudgetPart": {
        "trials": "Launches at most.",
        "hours": "Hours at most, of all launches together.",
        "nodes": "Launches at the same time: on nodes of a scheduler, or on the devices given.",
    },
    "NoisePart": {
        "miss": "Share of launches of a failing configuration that start, 0 to 1.",
        "transient": "Share of launches of a working configuration that fail, 0 to 1.",
    },
    "ConfirmPart": {
        "requests": "How many requests are sent at each level.",
        "concurrency": "Levels of the load: so many requests at once; none: no load.",
        "tokens": "How many tokens each answer has under load.",
        "text": "any: the weights are random, so the answers need not be text.",
    },
    "Override": {
        "when": "Items that are all set.",
        "sets": "Flag, or the engine's own field -> value that the log prints.",
    },
    "Landscape": {
        "overrides": "What the engine changes without a word.",
        "name": "Name of the landscape; printed in every log.",
        "wording": "The engine version whose lines are imitated.",
        "root": "Path of the engine's package in tracebacks.",
        "model": "Sizes that the log mentions.",
        "flags": "The options that the simulated server knows.",
        "fixed": "Flag or env:NAME -> value that must be set for the entries to hold.",
        "items": "Flag or env:NAME -> value that counts: what tells the entries apart.",
        "seconds": "Phase -> seconds at speed 1; a phase that is not named is not played.",
        "limits": "How every launch ends whose number is beyond one, whatever its items.",
        "entries": "How each exact set of items ends; a set without an entry is refused.",
    },
    "KnownFlag": {
        "flag": "Canonical flag name without dashes.",
        "aliases": "Other spellings, without dashes.",
        "kind": "What it takes.",
        "choices": "The values that it takes; empty: any.",
        "default": "Its value where it is not set.",
        "required": "Whether the server refuses to start without it.",
        "neutral": "Whether it changes no ending, like the port.",
    },
    "ModelFacts": {
        "type": "Class name of the model.",
        "free_gb": "Free memory of a rank before loading, in GB.",
        "weights_gb": "Weights of a rank, in GB.",
        "kv_gb": "KV pool of a rank, in GB.",
        "kv_tokens": "Tokens that the KV pool holds.",
        "context": "Longest context, in tokens.",
        "shards": "Files that the weights are in.",
    },
    "LandscapeEntry": {
        "ends": "How the launch ends.",
        "phase": "The phase in which it ends; none if it starts.",
        "ranks": "Ranks that show it: tags (TP3), all, or main.",
        "exception": "Type of the exception.",
        "message": "Message of the exception.",
        "frames": "Traceback, outermost first.",
        "wrapped": "Whether graph capture raises it again in words of its own.",
        "signal": "Name of the signal that ends a rank.",
        "code": "Exit code of a rank that leaves without a word.",
        "before": "Lines that each of the ranks prints first; {rank} and {ranks} are filled in.",
        "orphan": "Whether a daemon is left behind.",
        "serves": "What the server does once it has started.",
        "when": "The items that are set, and no others unless `more` says so.",
        "more": "Also of every set that holds these, where no earlier entry and no exact one fits.",
        "provenance": "Whether a real launch showed it.",
        "source": "Where it was recorded, or why it is assumed.",
    },
    "Limit": {
        "flag": "The flag whose number counts.",
        "above": "Every launch with a larger number ends so.",
        "below": "Every launch with a smaller number ends so.",
    },
    "Serving": {
        "answers": "What a generation is answered with.",
        "accept_length": "Accept length that /server_info tells; none: it tells nothing.",
        "fails_after": "After so many answers each further one is HTTP 503.",
    },
    "FrameAt": {
        "file": "Path below the engine's package.",
        "line": "Line of the file, from 1.",
        "function": "Name of the function.",
        "text": "The source line.",
    },
    "CaseFile": {
        "source": "Where the log comes from.",
        "expect": "What the diagnosis must say; a key that is left out is not compared.",
        "known_miss": "Whether the case is known to be diagnosed wrongly: true, or the reason.",
    },
    "SourceFile": {
        "kind": "real: printed by an engine; reconstructed: put together from a report.",
        "engine": "The engine that printed it.",
        "version": "Its version.",
        "note": "How it was launched, or what was made up.",
        "url": "The report that it comes from.",
    },
    "CauseFile": {
        "severity": "fatal: a live launch is stopped at such a line; suspect: it is watched.",
        "patterns": "Regular expressions; each matches one cleaned line.",
        "frames": "Regular expressions; one must match a file or function of the traceback.",
        "context": "Regular expressions; one must match an earlier line, of any rank.",
        "absent": "Regular expressions that must not match after the line, on any rank.",
        "hang": "Whether it applies only where no exception was printed.",
        "transient": "Whether it is the machine's: a trial that shows it proves nothing.",
        "yields_to": "Causes that win where both match.",
        "yields_to_kernels": "Whether a line that blames a kernel wins.",
        "general": "Whether any other cause of the same exception wins; never of high confidence.",
        "explains": "Causes that are consequences of this one.",
        "group_by": "Captures that tell occurrences apart.",
        "remedies": "What helps, the best first.",
        "origins": "What may bring it about, the likeliest first.",
        "discriminator": "The one test that tells most of the origins apart.",
        "escalate": "When to go to whom with it.",
        "fork_flags": "Flags that are named here and that no released SGLang has.",
        "counter_examples": "Lines that it must not match.",
    },
    "RemedyFile": {
        "changes": "The edits of the configuration.",
        "needs": "Preconditions: --flag, --flag VALUE|VALUE, no --flag, or FACT OP VALUE.",
        "span": "Values of a flag among which one that works may be searched.",
        "weight": "What it gives up beside the settings that it drops; 1 is a setting.",
        "probe": "It finds out more and is no remedy, such as a launch with a blocking device.",
    },
    "OriginFile": {
        "say": "What may bring the cause about.",
        "basis": "How that is known: report (a public one), code (read in it), hypothesis.",
        "look": "What would show that it is this one.",
        "sources": "Addresses of the reports.",
    },
    "ExpectFile": {
        "remedy": "Ways out that reports confirm; the best proposal must be one of them.",
    },
    "WayFile": {
        "set": "Flag -> value that the proposal must set; * is any value.",
        "unset": "Flags of which it must drop one.",
        "env": "Variable -> value that it must set; * is any value.",
        "step": "A regular expression for its sentence, where it is a step by hand.",
    },
    "SpanFile": {
        "flag": "The flag.",
        "start": "The value that is tried first; may hold a placeholder.",
        "end": "The last value.",
        "step": "From one value to the next; its sign is that of the direction.",
    },
    "ChangesFile": {
        "set": "Flag -> value; {name} stands for a capture, {gcd heads tp-size} for a sum.",
        "unset": "Flags to drop.",
        "env": "Variable name -> value, with placeholders like those of set.",
        "unset_env": "Variables to leave out.",
    },
}
# A limit ends a launch as an entry does.
INPUT_KEYS["Limit"] |= {
    key: text for key, text in INPUT_KEYS["LandscapeEntry"].items() if key not in {"when", "more"}
}
# Keys that an input file shares with a document mean the same.
SAME: dict[str, type[BaseModel]] = {
    "ExpectFile": Diagnosis,
    "CauseFile": Cause,
    "CulpritsFile": Culprits,
    "RemedyFile": CauseRemedy,
}
# What the readers' own code demands beyond the types of the keys.
RULES: dict[str, dict[str, Any]] = {
    "WantedPart": {
        "oneOf": [
            {"required": [key], "properties": {key: {"type": "string"}}}
            for key in ("flag", "env", "unset")
        ]
    },
    "LandscapeEntry": {
        "allOf": [
            {"if": {"properties": {"ends": {"const": "starts"}}}, "else": {"required": ["phase"]}},
            {
                "if": {"properties": {"ends": {"const": "exception"}}},
                "then": {"required": ["exception"]},
            },
        ]
    },
}
