"""Trials from a folder or an archive: the same observations, in order of time, and all that was not read is named."""

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

import dataflow.trial_files
import dataflow.trials
from dataflow.capture import TrialTar, TrialTree, open_capture
from dataflow.reads import Limits
from dataflow.trial_files import TrialFiles, Trouble, place_in, trial_files
from dataflow.trials import trial_observations
from extractors.harbor_trials import TrialEnded, TrialStarted, TrialUnreadable
from extractors.polls import TrialsListed
from extractors.record import Observation, SourceEnded, SourceFailed, SourceKind
from tests.builders import T0, us

ANCHOR_US = T0


def stamp(minute: int) -> str:
    return f"2026-07-20T{8 + minute // 60:02d}:{minute % 60:02d}:00Z"


def result(name: str, started: int, finished: int, reward: float = 1.0) -> str:
    return json.dumps(
        {
            "trial_name": name,
            "task_name": name.partition("__")[0],
            "started_at": stamp(started),
            "finished_at": stamp(finished),
            "verifier_result": {"rewards": {"reward": reward}},
        },
        indent=1,
    )


def trial(name: str, started: int, finished: int | None, reward: float = 1.0) -> dict[str, str | bytes]:
    """The files of a trial, by their path below trace_jobs. finished None: it still runs."""
    files: dict[str, str | bytes] = {
        f"{name}/config.json": json.dumps({"trial_name": name}),
        f"{name}/trial.log": "x\n",
    }
    if finished is not None:
        files[f"{name}/result.json"] = result(name, started, finished, reward)
    return files


TWO = {**trial("sort-it__bbbbbb2", 5, 20), **trial("fix-it__aaaaaa1", 1, 30, reward=0.0)}


def tree(root: Path, files: dict[str, Any]) -> TrialTree:
    for name, content in files.items():
        path = root / "trace_jobs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return TrialTree("trace_jobs", str(root / "trace_jobs"))


def tar(root: Path, files: dict[str, Any], name: str = "toy_trace_jobs.tar.gz", under: str = "trace_jobs/") -> TrialTar:
    with tarfile.open(root / name, "w:gz" if name.endswith("gz") else "w") as archive:
        for member, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            entry = tarfile.TarInfo(under + member)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    (found,) = (each for each in open_capture(str(root)).trials if isinstance(each, TrialTar))
    return found


def observed(trials: TrialTree | TrialTar, limits: Limits | None = None) -> tuple[list[Observation], list[str]]:
    notes: list[str] = []
    return list(trial_observations(trials, notes, ANCHOR_US, limits or Limits())), notes


def said(observations: list[Observation]) -> list[tuple[str, str, float]]:
    """Kind, trial and minute of each trial observation."""
    return [
        (type(each.signal).__name__, each.signal.trial, (each.at_us - T0) / 60_000_000)
        for each in observations
        if isinstance(each.signal, TrialStarted | TrialEnded | TrialUnreadable)
    ]


def failures(observations: list[Observation]) -> dict[str, str]:
    return {each.evidence.source: each.signal.why for each in observations if isinstance(each.signal, SourceFailed)}


def test_starts_and_ends_come_in_order_of_time(tmp_path: Path) -> None:
    observations, notes = observed(tree(tmp_path, TWO))
    assert said(observations) == [
        ("TrialStarted", "fix-it__aaaaaa1", 1),
        ("TrialStarted", "sort-it__bbbbbb2", 5),
        ("TrialEnded", "sort-it__bbbbbb2", 20),
        ("TrialEnded", "fix-it__aaaaaa1", 30),
    ]
    size = sum(len(content) for name, content in TWO.items() if name.endswith(".json"))
    assert observations[-1].signal == SourceEnded(SourceKind.TRIAL, 2, size, 0, True)
    assert (observations[-1].at_us, notes) == (us(1800), [])


def test_evidence_stands_in_the_named_file_at_its_line_and_offset(tmp_path: Path) -> None:
    observations, _ = observed(tree(tmp_path, TWO))
    ended = next(each for each in observations if isinstance(each.signal, TrialEnded))
    assert ended.evidence.source == "trace_jobs/sort-it__bbbbbb2/result.json"
    raw = (tmp_path / ended.evidence.source).read_bytes()
    line = raw[ended.evidence.offset :].split(b"\n")[0].decode()
    assert (line, raw.splitlines()[ended.evidence.line - 1].decode()) == (ended.evidence.quote, line)
    assert ended.signal.reward == 1.0


@pytest.mark.parametrize("name", ["toy_trace_jobs.tar", "toy_trace_jobs.tar.gz"])
@pytest.mark.parametrize("under", ["trace_jobs/", "./trace_jobs/", "", "toy_trace_jobs/", "trace_jobs/job-1/"])
def test_an_archive_says_the_same_as_its_folder(tmp_path: Path, name: str, under: str) -> None:
    from_tree, _ = observed(tree(tmp_path / "a", TWO))
    (tmp_path / "b").mkdir()
    from_tar, notes = observed(tar(tmp_path / "b", TWO, name, under))
    assert (said(from_tar), notes) == (said(from_tree), [])
    assert from_tar[0].evidence.source == f"{name}!/{under}fix-it__aaaaaa1/config.json"
    assert os.listdir(tmp_path / "b") == [name]


def test_a_jobs_own_files_are_no_trial(tmp_path: Path) -> None:
    job = {"config.json": "{}", "result.json": json.dumps({"n_total_trials": 2, "stats": {}, "started_at": stamp(0)})}
    inside = {f"2026-07-20__08-00-00/{name}": content for name, content in {**TWO, **job}.items()}
    from_tree, _ = observed(tree(tmp_path / "a", {**inside, **job}))
    (tmp_path / "b").mkdir()
    from_tar, _ = observed(tar(tmp_path / "b", {**inside, **job}))
    assert [trial for _, trial, _ in said(from_tree)] == [trial for _, trial, _ in said(from_tar)]
    assert {trial for _, trial, _ in said(from_tar)} == {"fix-it__aaaaaa1", "sort-it__bbbbbb2"}
    assert from_tar[-1].signal.lines == 2


@pytest.mark.parametrize("under", ["", "2026-07-20__08-00-00/"], ids=["beside the trials", "in the job's folder"])
def test_a_jobs_own_count_is_told_once_from_folder_and_archive(tmp_path: Path, under: str) -> None:
    counted = {"n_total_trials": 9, "updated_at": stamp(40), "stats": {"n_completed_trials": 2, "n_running_trials": 5}}
    inside = {f"{under}{name}": content for name, content in {**TWO, "result.json": json.dumps(counted)}.items()}
    (tmp_path / "b").mkdir()
    for trials in (tree(tmp_path / "a", inside), tar(tmp_path / "b", inside)):
        observations, notes = observed(trials)
        counts = [each for each in observations if isinstance(each.signal, TrialsListed)]
        assert [(each.signal, each.at_us) for each in counts] == [(TrialsListed(7, 2, us(2400)), us(2400))]
        assert counts[0].evidence.source.endswith(f"{under}result.json")
        assert (observations[-1].signal.lines, notes) == (2, [])


def test_a_jobs_own_file_that_cannot_be_read_makes_no_trial_unreadable(tmp_path: Path) -> None:
    observations, _ = observed(tree(tmp_path, {**TWO, "result.json": '{"n_total'}))
    assert {trial for _, trial, _ in said(observations)} == {"fix-it__aaaaaa1", "sort-it__bbbbbb2"}
    assert observations[-1].signal.unparsed == 0


def test_a_trial_without_a_time_has_none_and_stands_at_the_newest(tmp_path: Path) -> None:
    observations, _ = observed(tree(tmp_path, {**TWO, **trial("run-it__cccccc3", 0, None)}))
    assert said(observations)[-1] == ("TrialStarted", "run-it__cccccc3", 30)
    assert [each.evidence.at_us for each in observations if each.evidence.source.endswith("cccccc3/config.json")] == [
        None
    ]


def test_without_any_time_all_stand_at_the_anchor(tmp_path: Path) -> None:
    observations, _ = observed(tree(tmp_path, trial("run-it__cccccc3", 0, None)))
    assert [each.at_us for each in observations] == [ANCHOR_US, ANCHOR_US]


def test_a_malformed_result_is_an_unreadable_trial(tmp_path: Path) -> None:
    files = {**TWO, **trial("bad-it__dddddd4", 2, 9), "bad-it__dddddd4/result.json": '{"trial_name": "bad'}
    observations, _ = observed(tree(tmp_path, files))
    (bad,) = (each for each in observations if isinstance(each.signal, TrialUnreadable))
    assert (bad.signal.trial, bad.evidence.source) == ("bad-it__dddddd4", "trace_jobs/bad-it__dddddd4/result.json")
    assert (observations[-1].signal.unparsed, observations[-1].signal.lines) == (1, 3)


def test_links_in_a_folder_are_not_followed_and_named(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.json").write_text(result("fix-it__aaaaaa1", 1, 2))
    trials = tree(tmp_path, trial("fix-it__aaaaaa1", 1, None))
    folder = tmp_path / "trace_jobs" / "fix-it__aaaaaa1"
    (folder / "result.json").symlink_to("../../elsewhere/secret.json")
    (folder / "agent").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "trace_jobs" / "out-it__eeeeee5").symlink_to(tmp_path / "elsewhere")
    observations, notes = observed(trials)
    assert sorted(failures(observations)) == [
        "trace_jobs/fix-it__aaaaaa1/agent",
        "trace_jobs/fix-it__aaaaaa1/result.json",
        "trace_jobs/out-it__eeeeee5",
    ]
    assert [kind for kind, _, _ in said(observations)] == ["TrialStarted", "TrialUnreadable"]
    assert (len(notes), observations[-1].signal.complete) == (3, False)


def test_members_that_leave_or_link_are_skipped_and_named(tmp_path: Path) -> None:
    packed = tmp_path / "toy_trace_jobs.tar"
    with tarfile.open(packed, "w") as archive:
        for name, kind in [
            ("/etc/evil__aaaaaa1/result.json", tarfile.REGTYPE),
            ("trace_jobs/../../up__bbbbbb2/result.json", tarfile.REGTYPE),
            ("trace_jobs/fix-it__cccccc3/result.json", tarfile.SYMTYPE),
            ("trace_jobs/fix-it__cccccc3/agent/trajectory.json", tarfile.CHRTYPE),
        ]:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry, io.BytesIO())
    observations, notes = observed(
        TrialTar(packed.name, str(packed), open_capture(str(tmp_path)).trials[0].compression)
    )
    assert said(observations) == []
    assert list(failures(observations)) == [
        "toy_trace_jobs.tar!//etc/evil__aaaaaa1/result.json",
        "toy_trace_jobs.tar!/trace_jobs/../../up__bbbbbb2/result.json",
        "toy_trace_jobs.tar!/trace_jobs/fix-it__cccccc3/result.json",
        "toy_trace_jobs.tar!/trace_jobs/fix-it__cccccc3/agent/trajectory.json",
    ]
    assert len(notes) == 4


def test_a_torn_archive_gives_the_trials_before_the_tear(tmp_path: Path) -> None:
    many = {name: content for n in range(9) for name, content in trial(f"fix-{n}__aaaaaa{n}", n, n + 9).items()}
    noise = {f"fix-{n}__aaaaaa{n}/agent/noise.bin": os.urandom(50_000) for n in range(9)}
    found = tar(tmp_path, dict(sorted({**many, **noise}.items())))
    whole = Path(found.path).read_bytes()
    Path(found.path).write_bytes(whole[: len(whole) // 2])
    observations, _ = observed(found)
    assert 2 < len(said(observations)) < 18
    assert "torn" in failures(observations)["toy_trace_jobs.tar.gz"]
    assert not observations[-1].signal.complete


def test_a_bomb_of_an_archive_is_bounded_and_named(tmp_path: Path) -> None:
    found = tar(tmp_path, {**TWO, "fix-it__aaaaaa1/agent/huge.bin": bytes(30_000_000)})
    observations, _ = observed(found, Limits(ratio_from=1_000_000))
    assert "bomb" in failures(observations)["toy_trace_jobs.tar.gz"]
    assert len(said(observations)) == 4


@pytest.mark.parametrize("content", [b"", b"no archive at all"])
def test_what_is_no_archive_is_a_whole_failure(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "toy_trace_jobs.tar.gz").write_bytes(content)
    observations, notes = observed(open_capture(str(tmp_path)).trials[0])
    assert any(each.signal.whole for each in observations if isinstance(each.signal, SourceFailed))
    assert notes


def test_a_file_that_is_too_large_is_read_in_part_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataflow.trial_files, "TEXT_BYTES", 1000)
    large = {**trial("fix-it__aaaaaa1", 1, 2), "fix-it__aaaaaa1/exception.txt": "x" * 5000}
    (tmp_path / "b").mkdir()
    for trials in (tree(tmp_path / "a", large), tar(tmp_path / "b", large)):
        *_, files = (each for each in trial_files(trials) if isinstance(each, TrialFiles))
        (trouble,) = (each for each in trial_files(trials) if isinstance(each, Trouble))
        assert len(files.files["exception.txt"]) == 1000
        assert (trouble.source, "larger than 1000" in trouble.why) == (files.sources["exception.txt"], True)


def test_an_archive_may_mix_its_trials_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = dict(sorted(TWO.items(), key=lambda entry: entry[0].rpartition("/")[2]))
    found = tar(tmp_path, mixed)
    assert len(said(observed(found)[0])) == 4
    monkeypatch.setattr(dataflow.trial_files, "HELD_TRIALS", 1)
    observations, _ = observed(found)
    assert sorted(kind for kind, _, _ in said(observations)) == ["TrialEnded", "TrialStarted", "TrialStarted"]
    assert all("mixes" in why for why in failures(observations).values())


def test_many_troubles_are_counted_beyond_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataflow.trials, "TROUBLES_TOLD", 2)
    trials = tree(tmp_path, TWO)
    for number in range(5):
        (tmp_path / "trace_jobs" / f"out-{number}__eeeeee{number}").symlink_to(tmp_path)
    observations, notes = observed(trials)
    assert (len(notes), notes[-1]) == (3, "trace_jobs: 3 more file(s) or member(s) were not read")
    assert "5 file(s)" in observations[-1].signal.gap


def test_a_reader_that_fails_makes_an_unreadable_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(trial: str, files: object) -> None:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(dataflow.trials, "read_trial", fails)
    observations, _ = observed(tree(tmp_path, trial("fix-it__aaaaaa1", 1, 2)))
    assert [kind for kind, _, _ in said(observations)] == ["TrialUnreadable"]


def test_a_folder_that_is_gone_is_a_whole_failure(tmp_path: Path) -> None:
    observations, notes = observed(TrialTree("trace_jobs", str(tmp_path / "gone")))
    assert observations[0].signal == SourceFailed(SourceKind.TRIAL, "cannot be listed: No such file or directory")
    assert notes == ["trace_jobs: cannot be listed: No such file or directory"]


@pytest.mark.parametrize(
    ("member", "place"),
    [
        ("trace_jobs/fix__abcdefg/agent/a.json", ("fix__abcdefg", "agent/a.json")),
        ("toy_trace_jobs/fix__abcdefg/config.json", ("fix__abcdefg", "config.json")),
        ("./fix__abcdefg/config.json", ("fix__abcdefg", "config.json")),
        ("trace_jobs/2026-07-20__08-00-00/fix__abcdefg/config.json", ("fix__abcdefg", "config.json")),
        ("trace_jobs/unnamed/config.json", ("unnamed", "config.json")),
        ("trace_jobs/fix__abcdefg", ("", "fix__abcdefg")),
        ("trace_jobs/result.json", ("", "result.json")),
        ("result.json", ("", "result.json")),
        ("./", ("", "")),
    ],
)
def test_a_members_path_says_its_trial(member: str, place: tuple[str, str]) -> None:
    assert place_in(member) == place


def test_the_transcripts_of_a_trial_of_many_steps_are_read_from_a_folder_and_from_an_archive(tmp_path: Path) -> None:
    def transcript(*words: str) -> str:
        return json.dumps({"steps": [{"source": "agent", "message": word, "timestamp": stamp(9)} for word in words]})

    files = trial("two-parts__aaaaaa1", 5, 20) | {
        "two-parts__aaaaaa1/steps/one/agent/trajectory.json": transcript("read the log", "fix it"),
        "two-parts__aaaaaa1/steps/two/agent/trajectory.json": transcript("run the tests"),
    }
    for trials in (tree(tmp_path / "a", files), tar(_folder(tmp_path / "b"), files)):
        ends = [seen.signal for seen in observed(trials)[0] if type(seen.signal) is TrialEnded]
        assert [end.turns for end in ends] == [3]


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
