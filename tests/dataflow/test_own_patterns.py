"""A user's own patterns: read by, held to the laws, and told of where they can't be used."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from dataflow.cli import main
from dataflow.outcome import SettingsError
from dataflow.own_patterns import use_own_patterns
from extractors.catalogue import CATALOGUE, Catalogue
from extractors.sample import read_sample
from extractors.trainer import StepCompleted

ROOT = Path(__file__).parents[2]
TOLD = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "own-patterns.md").read_text(encoding="utf-8"), re.DOTALL)
ACME = TOLD[1] if TOLD else ""
"""The example of the docs."""
LINE = "[06:{minute:02d}:00] task=/alice/acme/0 | (Trainer pid=7) acme step done: {minute} of 80 in 60.0s\n"


@pytest.fixture(autouse=True)
def shipped() -> Iterator[None]:
    whole = CATALOGUE.whole
    yield
    CATALOGUE.use(whole, "")


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    path = tmp_path / "acme.py"
    path.write_text(ACME)
    return path


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    folder = tmp_path / "capture"
    (folder / "polls").mkdir(parents=True)
    (folder / "finelog.log").write_text("".join(LINE.format(minute=minute) for minute in range(1, 40)))
    poll = {
        "at": "2026-07-01T06:39:30Z",
        "probe": "state",
        "command": ["iris_ops.py", "/alice/acme", "--json"],
        "exit": 0,
        "elapsed_ms": 5,
        "stdout": '{"job_id": "/alice/acme", "state": "running", "state_int": 3}\n',
        "stderr": "",
    }
    (folder / "polls" / "state.jsonl").write_bytes(orjson.dumps(poll) + b"\n")
    return folder


def ran(*words: str | Path, **environment: str) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], env=environment)


def verdict_of(result: Result) -> dict[str, object]:
    assert result.exit_code == 0, result.output
    found: dict[str, object] = orjson.loads(result.stdout.splitlines()[-1])
    return found


def refused(path: Path, content: str) -> str:
    path.write_text(content)
    with pytest.raises(SettingsError) as told:
        use_own_patterns((str(path),))
    return told.value.message


def test_a_job_of_whose_lines_the_catalogue_knows_none_is_judged_by_ones_own(acme: Path, capture: Path) -> None:
    before = verdict_of(ran("replay", "--format", "jsonl", capture))
    after = verdict_of(ran("--patterns", acme, "replay", "--format", "jsonl", capture))
    assert before["step"] == {"done": 0, "of": None}
    assert after["step"] == {"done": 39, "of": 80}
    assert "acme_step" in orjson.dumps(after).decode()


def test_a_variable_names_them_too(acme: Path, capture: Path) -> None:
    assert verdict_of(ran("replay", "--format", "jsonl", capture, WEDGEWATCH_PATTERNS=str(acme)))["step"] == {
        "done": 39,
        "of": 80,
    }


def test_a_cause_names_the_own_lines_that_show_it(acme: Path) -> None:
    assert "acme_shards_gone" in ran("--patterns", acme, "explain", "service_unreachable", "--format", "jsonl").stdout


def test_a_module_is_found_by_its_name(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(acme.parent))
    use_own_patterns(("acme",))
    assert read_sample("acme step done: 7 of 80 in 1.0s") == [("acme_step", StepCompleted(7, 80, 1.0))]


def test_other_patterns_are_another_reading_of_what_is_kept(acme: Path) -> None:
    use_own_patterns((str(acme),))
    first = CATALOGUE.written
    shipped = Catalogue(CATALOGUE.whole.patterns[:-2])
    CATALOGUE.use(shipped, "")
    use_own_patterns((str(acme),))
    assert CATALOGUE.written == first
    acme.write_text(ACME + "# changed\n")
    CATALOGUE.use(shipped, "")
    use_own_patterns((str(acme),))
    assert first
    assert CATALOGUE.written != first


@pytest.mark.parametrize(
    ("was", "put", "says"),
    [
        ("StepCompleted(7, 80, 301.5)", "StepCompleted(8, 80, 301.5)", "acme_step: its sample 'acme step done: 7 of"),
        ('rejects=("acme step done: never",)', 'rejects=("acme step done: 1 of 2 in 3s",)', "it reads its look-alike"),
        ('rejects=("acme step done: never",)', "rejects=()", "names no look-alike"),
        ('"acme step done:",', '"acme",', "shorter than 5 characters"),
        ('hints=("acme step done:",)', 'hints=("acme step ended:",)', "none of its hints stands in its sample"),
        (r"acme step done: (\d{1,9}) of", r"acme step done: (\d{1,9} of", "its regex can't be read"),
        ('Fault("service_unreachable", "10', 'Fault("no_such_thing", "10', "no cause 'no_such_thing'"),
        ("    role=Role.ROOT,\n", "", "of Nature.FAULT has a role"),
        ("acme_step", "buffer_progress", "a shipped pattern has this name"),
        (
            "int(found[1]), int",
            "found[1], int",
            "last failed: ValidationError: Expected `int`, got `str`",
        ),
        ("return Fault(", "return (0,) or Fault(", "tuple is no signal that a tracker folds"),
        ("return Fault(", "raise SystemExit(0) or Fault(", "its function last failed: SystemExit: 0"),
        ("    return StepCompleted(int(", "    return 1 // 0 or StepCompleted(int(", "ZeroDivisionError: "),
        ('("acme step done: never",)', '("acme step done: never")', "its rejects are one text, not a tuple"),
        ('hints=("acme step done:",)', "hints=None", "its hints must be a tuple of texts"),
        ('hints=("acme step done:",)', 'hints=("acme step done:", "done\\n")', "that can stand in one line"),
        (
            'samples={"acme step done: 7 of 80 in 301.5s": StepCompleted(7, 80, 301.5)}',
            "samples=[]",
            "its samples must",
        ),
        ("Nature.PROGRESS", '"progress"', "its nature must be one of"),
        ("Nature.PROGRESS", "Nature.FAULT", "of Nature.FAULT says a Fault"),
        ("Role.ROOT", '"root"', "its role must be one of"),
        ('r"acme step', 'b"acme step', "its regex must be a text"),
        ('"""What our trainer prints."""', "raise SystemExit(0)", "line 1: cannot be loaded: SystemExit: 0"),
        ('"""What our trainer prints."""', "raise GeneratorExit", "line 1: cannot be loaded: GeneratorExit"),
        ("PATTERNS = (acme_step, acme_shards_gone)", "PATTERNS = (acme_step)", "PATTERNS must be a tuple of patterns"),
        ("PATTERNS = (acme_step,", "PATTERNS = (int,", "is no pattern"),
        ("PATTERNS =", "PATTERN =", "has no PATTERNS"),
        ("import Nature, Role, pattern", "import Nature, Rôle, pattern", "cannot be loaded: ImportError"),
        ("from extractors.signal import Fault", "from extractors.signal import", "cannot be loaded: SyntaxError"),
        ('"""What our trainer prints."""', "print(1 / 0)", "line 1: cannot be loaded: ZeroDivisionError"),
    ],
)
def test_what_breaks_a_law_is_told_and_nothing_is_used(tmp_path: Path, was: str, put: str, says: str) -> None:
    assert ACME.count(was) >= 1
    path = tmp_path / "acme.py"
    for line in (told := refused(path, ACME.replace(was, put))).split("\n"):
        assert line.startswith(f"{path}: ")
    assert says in told
    assert not CATALOGUE.written


def test_a_pattern_takes_no_line_from_a_shipped_one(tmp_path: Path) -> None:
    greedy = ACME.replace("acme step done:", "Optimizer step", 1).replace("acme step done: (", "Optimizer step (")
    greedy = greedy.replace('"acme step done: 7 of 80 in 301.5s"', '"Optimizer step 7 of 80 in 301.5s"')
    greedy = greedy.replace(r'r"Optimizer step (\d{1,9})', r'r"Optimizer step (?:completed: step=)?(\d{1,9})')
    greedy = greedy.replace(r" of (\d{1,9}) in ([\d.]{1,12})s", r"(?: of (\d{1,9}) in ([\d.]{1,12})s)?")
    greedy = greedy.replace("int(found[2]), float(found[3])", "int(found[2] or 0), float(found[3] or 0)")
    assert "optimizer_stepped's sample 'Optimizer step completed" in refused(tmp_path / "acme.py", greedy)


def test_a_regex_that_backtracks_without_end_costs_its_line_and_no_more(tmp_path: Path, capture: Path) -> None:
    log = capture / "finelog.log"
    log.write_text(LINE.format(minute=0).replace("done: 0 of 80", f"done: {'1' * 60} off") + log.read_text())
    endless = tmp_path / "endless.py"
    endless.write_text(ACME.replace(r"done: (\d{1,9}) of", r"done: ((?:\d|\d\d)+) of"))
    verdict = verdict_of(ran("--patterns", endless, "replay", "--format", "jsonl", capture))
    assert verdict["step"] == {"done": 39, "of": 80}


@pytest.mark.parametrize(
    "does", ["raise SystemExit(1)", "raise KeyError(7)", "return StepCompleted('x')", "return {1}"]
)
def test_a_line_over_which_the_function_fails_is_counted_and_harms_nothing(
    does: str, tmp_path: Path, capture: Path
) -> None:
    failing = tmp_path / "failing.py"
    begins = "    return StepCompleted(int(found[1])"
    failing.write_text(ACME.replace(begins, f'    if found[1] == "20":\n        {does}\n{begins}'))
    verdict = verdict_of(ran("--patterns", failing, "replay", "--format", "jsonl", capture))
    assert verdict["step"] == {"done": 39, "of": 80}
    coverage = verdict["coverage"]
    assert isinstance(coverage, dict)
    assert coverage["finelog.log"]["unparsed"] == 1


def test_what_a_file_prints_as_it_is_loaded_stands_in_no_record(acme: Path, capture: Path) -> None:
    acme.write_text(ACME + 'print("hello")\n')
    shown = ran("--patterns", acme, "replay", "--format", "jsonl", capture)
    assert "hello" not in shown.stdout
    assert "hello" in shown.stderr


def test_a_change_in_what_a_file_imports_is_another_reading(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(acme.parent))
    helper, written = acme.with_name("acme_words.py"), []
    acme.write_text("import acme_words\n" + ACME)
    whole = CATALOGUE.whole
    for says in ("WORDS = 1\n", "WORDS = 22\n"):
        helper.write_text(says)
        monkeypatch.delitem(sys.modules, "acme_words", raising=False)
        for name in [name for name in sys.modules if name.startswith("own_patterns_")]:
            monkeypatch.delitem(sys.modules, name)
        CATALOGUE.use(whole, "")
        use_own_patterns((str(acme),))
        written.append(CATALOGUE.written)
    assert written[0] != written[1]


def test_the_same_file_by_two_spellings_is_one(acme: Path) -> None:
    use_own_patterns((str(acme), f"{acme.parent}/./acme.py", ""))
    assert read_sample("acme step done: 7 of 80 in 1.0s") == [("acme_step", StepCompleted(7, 80, 1.0))]


def test_a_file_that_is_not_there_ends_the_command_in_one_line(tmp_path: Path, capture: Path) -> None:
    result = ran("--patterns", tmp_path / "none.py", "replay", capture)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "none.py: cannot be loaded: FileNotFoundError" in result.stderr


def test_commands_that_read_no_line_do_not_ask_for_them(tmp_path: Path) -> None:
    result = ran("--patterns", tmp_path / "none.py", "status", "--store", tmp_path / "store")
    assert "none.py" not in result.output


def test_the_second_example_of_the_docs_keeps_the_laws(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own-patterns.md").read_text(), re.DOTALL)
    imports = "from extractors.pattern import Nature, pattern\nfrom extractors.trainer import PhaseStarted\n\n"
    phases = tmp_path / "phases.py"
    phases.write_text(f"{imports}{examples[1]}\nPATTERNS = (acme_phase,)\n")
    use_own_patterns((str(phases),))
    assert [name for name, _ in read_sample("acme enters phase generate")] == ["acme_phase"]
