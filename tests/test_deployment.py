"""The examples of how `watch` is kept running: they parse, and name options of the command that there are."""

import re
import shlex
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import Command, Context, Option

from dataflow.cli import main

DOCS = Path(__file__).resolve().parent.parent / "docs"
UNIT = DOCS / "systemd" / "wedgewatch.service"
MANIFESTS = sorted((DOCS / "kubernetes").glob("*.yaml"))
HEALTH = "watch/health.json"


def unit() -> RawConfigParser:
    parsed = RawConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str
    parsed.read_string(UNIT.read_text())
    return parsed


def objects() -> dict[str, dict[str, Any]]:
    """The manifests by their kind."""
    every = [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text())]
    return {each["kind"]: each for each in every}


def container() -> dict[str, Any]:
    containers: list[dict[str, Any]] = objects()["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert len(containers) == 1
    return containers[0]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line of wedgewatch in the examples and on the page, without the program's name."""
    yield "unit", shlex.split(unit()["Service"]["ExecStart"])[1:]
    yield "manifest", container()["command"][1:]
    page = (DOCS / "watching.md").read_text()
    for block in re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            for found in re.finditer(r"\bwedgewatch ((?:watch|status|report|explain|replay|record)\b[^|;&]*)", line):
                yield f"page: {line}", shlex.split(found[1], comments=True)


@pytest.mark.parametrize(("place", "words"), [*commands()], ids=lambda each: each if isinstance(each, str) else "")
def test_commands_of_the_examples_are_commands_with_their_options(place: str, words: list[str]) -> None:
    command = main.commands[words[0]]
    assert isinstance(command, Command)
    known = {name for option in command.params if isinstance(option, Option) for name in option.opts}
    named = {word for word in words[1:] if word.startswith("--")}
    assert named <= known
    command.make_parser(Context(command)).parse_args(words[1:])


def test_the_examples_keep_their_state_where_they_may_write() -> None:
    service = unit()["Service"]
    assert f"/var/lib/{service['StateDirectory']}/store" in service["ExecStart"]
    writable = [each["mountPath"] for each in container()["volumeMounts"] if not each.get("readOnly")]
    store = container()["command"][container()["command"].index("--store") + 1]
    assert any(store.startswith(f"{path}/") for path in writable)


def test_logs_are_mounted_read_only() -> None:
    assert unit()["Service"]["ReadOnlyPaths"] == "/srv/runs"
    capture = container()["command"][-1]
    mounts = [each for each in container()["volumeMounts"] if capture.startswith(f"{each['mountPath']}/")]
    assert [each["readOnly"] for each in mounts] == [True]


def test_one_watcher_runs_at_a_time_and_has_longer_than_two_seconds_to_end() -> None:
    spec = objects()["Deployment"]["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"]["type"] == "Recreate"
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] > 2
    assert int(unit()["Service"]["TimeoutStopSec"]) > 2


def test_a_pod_that_no_longer_tells_of_its_health_is_started_anew() -> None:
    store = container()["command"][container()["command"].index("--store") + 1]
    for probe in ("startupProbe", "livenessProbe"):
        assert f"{store}/{HEALTH}" in container()[probe]["exec"]["command"][-1]


def test_claims_of_the_deployment_are_there_or_the_runs_own() -> None:
    volumes = objects()["Deployment"]["spec"]["template"]["spec"]["volumes"]
    claims = {each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each}
    assert claims - {"rl-runs"} == {objects()["PersistentVolumeClaim"]["metadata"]["name"]}
