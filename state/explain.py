"""The pages that are written from the code: docs/gates.md and docs/patterns.md. `python -m state.explain` writes both.

What a page says of a clause, a threshold, a pattern or a cause is its docstring or its row: it is said once.
"""

from pathlib import Path

from extractors.catalogue import CATALOGUE
from extractors.pattern import Pattern
from state.benign import NOTED
from state.causes import CAUSES, Cause
from state.clause_facts import conditions_of, sentence_of, thresholds, thresholds_of
from state.decision import GATES
from state.gate import Clause, Excuse, Gate
from state.policy import PHASE_STAGES, Stage

DOCS = Path(__file__).parent.parent / "docs"
WRITTEN = "<!-- Written by `python -m state.explain` from the code. Edit the docstrings there, then run it. -->"
ASKS = {
    "A": "is the job alive, coming up, done, wedged or dead?",
    "B": "is the hardware fed, or busy or idle for a good reason?",
    "C": "do the rollouts give the trainer something to learn from?",
    "D": "do the training metrics tell of collapse? Advisory: alone it kills only for values that are not finite.",
}
WORDS = """\
The gates are weighed every ten seconds of event time, each from its first clause on; the first clause that has
something to say gives the answer. An answer is a status, a condition and a reason:

- **PASS**: everything that was needed to tell was read, and the job is not in the bad state.
- **FAIL**: the bad state is there, and the lines that show it are quoted.
- **ERROR**: it can't be told; what is missing is named, with the command and its output where one was run.
- **N/A**: the question does not arise, as the job is over or has no such thing.

The verdict: a job whose two newest ended attempts died of the same failure is KILL; else a FAIL of A, B or C is KILL;
else a FAIL of D with values that are not finite is KILL; else an ERROR of A, B or C is ERROR; else NO-KILL.

Words that reasons use:

- **progress**: the trainer changed something: a phase began or ended, a step, a metrics record, a checkpoint, a buffer
  that rose. A **heartbeat** (engine statistics, host memory, a bar that stands) only proves a living process.
- **stage**: what the trainer is about, by its innermost open phase; bring-up before the first one.
- **allowance**: how long a phase may take without progress: the larger of its stage's floor and three times its longest
  completed duration in this run. A phase that is seen for the first time has twice its floor. `[expect]` in job.toml
  overrides. **Stale** is a job without progress for longer.
- **attempt**: one life of the job between two starts; a **burned** one died, pre-empted ones don't count.
- **home**: an independent source of lines: the aggregated log, the per-actor logs, each probe, the trials' files.
- **first cause**: the earliest error that explains the others, not the loudest; later ones are its **cascade**.
- **policy** ranks train, **engines** generate; the **buffer** between them holds finished groups for the next step.
"""
READING = """\
The {count} patterns that read log lines, by speaker: the program that prints the line. Polls and trial files are read
by parsers of their own (`extractors/poll_reading.py`, `extractors/harbor_trials.py`).

A pattern's nature says what its line is worth: **progress** moves the trainer, a **heartbeat** proves a living process,
a **fault** is an error, **benign** looks like one and is none, a **fact** tells what the job is. A fault's role says
where it stands among others: a **root** causes, a **cascade** follows, **confirms** repeats, **either** may be both.
Below each stands one of its true lines, as printed."""


def gates_page() -> str:
    """docs/gates.md: the gates' clauses in their order, the stages and the thresholds."""
    parts = ["# Gates", WRITTEN, WORDS.rstrip(), *(_gate(gate) for gate in GATES), _excuses(), _stages(), _thresholds()]
    return "\n\n".join(parts) + "\n"


def _gate(gate: Gate) -> str:
    asked = f"## Gate {gate.letter}: {gate.title}\n\n{ASKS[gate.letter][:1].upper()}{ASKS[gate.letter][1:]}"
    return "\n".join([asked, "", *(_clause(clause) for clause in gate.clauses)])


def _clause(clause: Clause) -> str:
    says = ", ".join(f"{status} `{condition}`" for status, condition in conditions_of(clause))
    names = ", ".join(f"`{name}`" for name in thresholds_of(clause))
    weighs = f" Weighs {names}." if names else ""
    sentence = sentence_of(clause)
    rule = "Rule " if sentence[:1].isdigit() else ""
    return f"- `{clause.__name__}` → {says}. {rule}{sentence}{weighs}"


def _excuses() -> str:
    muted = [(gate.letter, excuse) for gate in GATES for excuse in gate.excuses]
    lines = [_excuse(f"gate {letter} passes over", excuse) for letter, excuse in muted]
    lines += [_excuse("noted beside", excuse) for excuse in NOTED]
    return "\n".join(["## Benign situations", "", *lines])


def _excuse(how: str, excuse: Excuse) -> str:
    conditions = ", ".join(f"`{condition}`" for condition in excuse.mutes)
    return f"- `{excuse.name}` ({how} {conditions}): {excuse.why}."


def _stages() -> str:
    phases = {stage: [phase for phase, of in PHASE_STAGES.items() if of is stage] for stage in Stage}
    named = [f"| {stage} | {', '.join(f'`{name}`' for name in names)} |" for stage, names in phases.items() if names]
    tail = f"Every other phase is `{Stage.TRAINING}`; `step` keeps the stage of its newest inner phase."
    return "\n".join(["## Stages", "", "| stage | phases of the trainer |", "|---|---|", *named, "", tail])


def _thresholds() -> str:
    rows = [f"| `{name}` | {value} | {doc} |" for name, value, doc in thresholds()]
    return "\n".join(["## Thresholds", "", "| name | value | what for |", "|---|---|---|", *rows])


def patterns_page() -> str:
    """docs/patterns.md: each speaker's patterns with a true line, and the table of causes."""
    patterns = CATALOGUE.whole.patterns
    speakers = list(dict.fromkeys(pattern.speaker for pattern in patterns))
    head = READING.format(count=len(patterns))
    spoken = [_speaker(speaker, [one for one in patterns if one.speaker == speaker]) for speaker in speakers]
    return "\n\n".join(["# Patterns", WRITTEN, head, *spoken, _causes()]) + "\n"


def _speaker(speaker: str, patterns: list[Pattern]) -> str:
    return "\n\n".join([f"## {speaker}", *(_pattern(pattern) for pattern in patterns)])


def _pattern(pattern: Pattern) -> str:
    nature = f"{pattern.nature}, {pattern.role}" if pattern.role else str(pattern.nature)
    sample = "\n".join(f"    {line}" for line in next(iter(pattern.samples)).splitlines())
    return f"### `{pattern.name}` ({nature})\n\n{' '.join(pattern.doc.split())}\n\n{sample}"


def _causes() -> str:
    head = (
        "What a fault's cause code means. Hang: a sign of gate A's `WEDGED`. Fatal: the line itself ends its process. "
        "Transient: whether a relaunch alone can be expected to pass it. `wedgewatch explain CODE` shows its lines."
    )
    table = ["| code | what | signs | transient | fix | relaunch | known from |", "|---|---|---|---|---|---|---|"]
    return "\n".join(["## Causes", "", head, "", *table, *map(_cause, CAUSES.values())])


def _cause(cause: Cause) -> str:
    signs = [word for word, held in (("hang", cause.hang), ("fatal", cause.fatal), (cause.oom, cause.oom)) if held]
    cells = (f"`{cause.code}`", cause.title, ", ".join(signs), cause.transient, cause.fix, cause.relaunch, cause.source)
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


PAGES = {"gates.md": gates_page, "patterns.md": patterns_page}


def write(folder: Path = DOCS) -> None:
    """Writes the pages into a folder, the source tree's docs/ by default."""
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    if not DOCS.is_dir():
        raise SystemExit(f"{DOCS}: no such folder; the pages are written into a clone of the project")
    write()
