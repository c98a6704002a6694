"""job.toml: what it says arrives as facts and probes; what it can't mean is refused with file, key and line."""

from pathlib import Path

import pytest

from dataflow.job_toml import duration
from dataflow.outcome import SettingsError
from dataflow.settings import Probe, Sync, load_job, read_job

WHOLE = b"""\
# written by the launcher
[job]
id = "/bob/rl-tiny"
cluster = "lab"
architecture = "dense"
active_params_b = 8
mode = "standard"
max_retries = 2

[mesh]
policy = ["head-0:0-3"]
engine = [
  "head-0:4-7",   # the other half
  "worker-1",
]
[engines]
count = 4
enforce_eager = true
[rollouts]
n_concurrent_trials = 96
max_staleness_steps = 0
[training]
max_steps = 12
[expect]
bring_up = "45m"
first_trial = "1h30m"
phases = { policy_train = "2h", generate = "90s" }
[sync]
command = ["pull", "/bob/rl-tiny"]
every = "2m"
[probes.gpu]
targets = ["head-0", "worker-1"]
command = ["kubectl", "exec", "{target}", "--", "nvidia-smi"]
every = "2m"
"""


def refused(toml: str) -> str:
    with pytest.raises(SettingsError) as wrong:
        read_job(toml.encode(), "runs/job.toml")
    return wrong.value.message


def test_every_table_arrives_where_the_trackers_look_for_it() -> None:
    facts = read_job(WHOLE).facts
    assert (facts.id, facts.architecture, facts.active_params_b, facts.max_retries) == ("/bob/rl-tiny", "dense", 8.0, 2)
    assert (facts.policy_mesh, facts.engine_mesh) == (("head-0:0-3",), ("head-0:4-7", "worker-1"))
    assert (facts.engine_count, facts.enforce_eager, facts.n_concurrent_trials) == (4, True, 96)
    assert (facts.max_staleness_steps, facts.max_steps) == (0, 12)
    assert facts.expect == {
        "bring_up": 2700.0,
        "first_trial": 5400.0,
        "phases.policy_train": 7200.0,
        "phases.generate": 90.0,
    }


def test_what_is_not_said_stays_unsaid() -> None:
    facts = read_job(b"").facts
    assert facts.id is None
    assert facts.policy_mesh == ()
    assert facts.expect == {}


def test_probes_and_sync_take_their_defaults() -> None:
    settings = read_job(WHOLE)
    assert settings.sync == Sync(("pull", "/bob/rl-tiny"), every=120.0, timeout=300.0)
    (probe,) = settings.probes
    assert (probe.name, probe.every, probe.timeout) == ("gpu", 120.0, 20.0)


def test_a_probe_runs_once_for_each_target() -> None:
    probe = Probe("gpu", ("exec", "{target}", "on={target}"), ("pod-0", "pod-1"))
    assert probe.commands() == (
        ("pod-0", ("exec", "pod-0", "on=pod-0")),
        ("pod-1", ("exec", "pod-1", "on=pod-1")),
    )
    assert Probe("state", ("iris",)).commands() == (("", ("iris",)),)


def test_the_line_of_each_fact_is_kept() -> None:
    lines = read_job(WHOLE).lines
    assert (lines["id"], lines["engine_mesh"], lines["engine_count"], lines["max_steps"]) == (3, 12, 17, 23)


@pytest.mark.parametrize(
    ("toml", "line", "key"),
    [
        ('[job]\n\nname = "x"', 3, "job.name: unknown key"),
        ("[job]\nid = 7", 2, "job.id: it must be a string"),
        ("[engine]\ncount = 2", 1, "engine: unknown key"),
        ("[engines]\ncount = 0", 2, "engines.count"),
        ("[engines]\ncount = true", 2, "engines.count"),
        ('[engines]\n# why\n"count" = -3', 3, "engines.count"),
        ('[engines]\nenforce_eager = "no"', 2, "engines.enforce_eager"),
        ("engines.count = -1", 1, "engines.count"),
        ('[job]\nmode = "solo"', 2, "job.mode"),
        ("[job]\nactive_params_b = inf", 2, "job.active_params_b"),
        ('[mesh]\nengine = [\n  "pod-0",\n  "pod-1:7-4",\n]', 4, "mesh.engine.1"),
        ('[mesh]\npolicy = ["pod 1"]', 2, "mesh.policy.0"),
        ('[mesh]\npolicy = ["pod-1:"]', 2, "mesh.policy.0"),
        ('[expect]\nfirst_trial = ""', 2, "expect.first_trial"),
        ("[expect]\nfirst_trial = 90", 2, "expect.first_trial"),
        ('[expect]\nphases = { eval = "0s" }', 2, "expect.phases.eval"),
        ('[expect.phases]\n\neval = "-2h"', 3, "expect.phases.eval"),
        ('[sync]\nevery = "60s"', 1, "sync.command: missing"),
        ('[probes.gpu]\nevery = "60s"\ncommand = []', 3, "probes.gpu.command"),
        ('[probes.disk]\ncommand = ["df"]', 1, "probes.disk: unknown key"),
        ('[probes.gpu]\ncommand = ["smi", "{target}"]', 1, "probes.gpu.targets"),
        ('[probes.gpu]\ncommand = ["smi"]\ntargets = ["a", "b"]', 3, "probes.gpu.targets"),
    ],
)
def test_a_wrong_setting_names_file_line_and_key(toml: str, line: int, key: str) -> None:
    message = refused(toml)
    assert message.startswith(f"runs/job.toml: line {line}: {key}")


def test_every_wrong_setting_is_told_at_once() -> None:
    message = refused('[job]\nidd = "x"\n[training]\nmax_steps = 1.5\n')
    assert [part.split(": ")[1] for part in message.splitlines()] == ["line 2", "line 4"]


def test_keys_inside_strings_and_lists_are_no_keys() -> None:
    toml = '[job]\nuntested = """\ncount = 3\n[engines]\n"""\ngeometry = "a # b"\n[engines]\ncount = -1\n'
    assert "line 8: engines.count" in refused(toml)


@pytest.mark.parametrize(("toml", "line"), [("[job]\nid = ", 2), ('[job]\nid = "a"\nid = "b"\n\n', 3), ("[job\n", 1)])
def test_broken_toml_names_the_line(toml: str, line: int) -> None:
    assert f"line {line}" in refused(toml)


def test_bytes_that_are_no_text_name_the_line() -> None:
    with pytest.raises(SettingsError, match=r"job\.toml: line 2: the bytes are no UTF-8"):
        read_job(b'[job]\nid = "\xff"')


def test_a_file_that_is_not_there_is_a_settings_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load_job(tmp_path / "job.toml")


@pytest.mark.parametrize(("text", "seconds"), [("60s", 60), ("45m", 2700), ("2h", 7200), ("1h30m", 5400), ("1.5m", 90)])
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "5", "5 m", "m", "3w", "30m1h", "1e3s", "99999d", "0m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration(text)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a=" + b"[" * 100_000, "line 1: nested too deeply"),
        (b"[job]\nmax_retries=" + b"9" * 5_000, "line 2: Exceeds the limit"),
    ],
)
def test_what_the_parser_itself_chokes_on_is_an_error_with_its_line(content: bytes, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        read_job(content)


def test_a_file_too_large_to_be_one_is_refused_unread() -> None:
    with pytest.raises(SettingsError, match="larger than"):
        load_job(Path("/dev/zero"))


def test_thousands_of_errors_are_counted_beyond_the_first() -> None:
    with pytest.raises(SettingsError) as caught:
        read_job(b"[job]\n" + b"".join(b"k%d = 1\n" % number for number in range(2_000)))
    assert caught.value.message.count("\n") == 20
    assert caught.value.message.endswith("job.toml: 1980 more errors")


def test_probe_that_would_change_something_is_refused_with_the_line_of_its_word() -> None:
    said = refused('[probes.pods]\ncommand = [\n  "kubectl",\n  "delete",\n  "pods",\n]\n[sync]\ncommand = ["rm", "x"]')
    first, second = said.split("\n")
    assert first.startswith(
        "runs/job.toml: line 4: probes.pods.command.1: 'delete' removes what is there: it is refused"
    )
    assert second.startswith("runs/job.toml: line 8: sync.command.0: 'rm' removes what is there")


def test_target_that_makes_a_probe_change_something_is_refused_at_its_own_line() -> None:
    said = refused('[probes.gpu]\ncommand = ["sh", "-c", "ssh {target} nvidia-smi"]\ntargets = ["a", "b; kill 1;"]')
    assert said.startswith("runs/job.toml: line 3: probes.gpu.targets.1: 'kill' ends processes")
