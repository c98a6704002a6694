"""The examples of how `watch` is kept running: they parse, and name options of the command that there are."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import Command, Context, Group, Option

from dataflow.arguments import ShareOf
from dataflow.cli import main
from dataflow.kafka import partition_of
from dataflow.share import Share

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
COMPOSE = ROOT / "docker-compose.yml"
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


def services() -> dict[str, dict[str, Any]]:
    """Those of the composition, by name."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def ours() -> dict[str, list[str]]:
    """The command lines of the composition, without the program's name."""
    told = {name: shlex.split(each["command"]) for name, each in services().items() if "command" in each}
    assert {words[0] for words in told.values()} == {"wedgewatch"}
    return {name: words[1:] for name, words in told.items()}


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line of wedgewatch in the examples and on the page, without the program's name."""
    yield "unit", shlex.split(unit()["Service"]["ExecStart"])[1:]
    yield "manifest", container()["command"][1:]
    for name, words in ours().items():
        yield f"composition: {name}", words
    page = "".join((DOCS / name).read_text() for name in ("watching.md", "kafka.md"))
    for block in re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            for found in re.finditer(rf"\bwedgewatch ((?:{'|'.join(main.commands)})\b[^|;&]*)", line):
                yield f"page: {line}", shlex.split(found[1], comments=True)


@pytest.mark.parametrize(("place", "words"), [*commands()], ids=lambda each: each if isinstance(each, str) else "")
def test_commands_of_the_examples_are_commands_with_their_options(place: str, words: list[str]) -> None:
    command, rest = main.commands[words[0]], words[1:]
    if isinstance(command, Group):
        command, rest = command.commands[rest[0]], rest[1:]
    assert isinstance(command, Command)
    known = {name for option in command.params if isinstance(option, Option) for name in option.opts}
    named = {word for word in rest if word.startswith("--")}
    assert named <= known
    command.make_parser(Context(command)).parse_args(rest)


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


def test_composition_says_nothing_in_comments_and_names_what_is_there() -> None:
    assert "#" not in COMPOSE.read_text()
    told = yaml.safe_load(COMPOSE.read_text())
    for name, service in services().items():
        assert set(service["depends_on"] if name != "kafka" else ()) <= set(services())
        for place, target, *_ in (volume.split(":") for volume in service.get("volumes", ())):
            assert place in told["volumes"] or (ROOT / place).is_dir(), f"{name}: {place}"
            assert target.startswith("/")
        assert {"image", "build"} & set(service)
    assert (ROOT / "Dockerfile").exists()


def test_composition_ships_captures_of_the_repository_so_that_each_flow_process_judges_one() -> None:
    (mount,) = services()["ship"]["volumes"]
    here, there, mode = mount.split(":")
    assert mode == "ro"
    shipped = [ROOT / here / Path(word).relative_to(there) for word in ours()["ship"] if word.startswith(there)]
    jobs = [tomllib.loads((capture / "job.toml").read_text())["job"]["id"] for capture in shipped]
    partitions = int(ours()["topics"][ours()["topics"].index("--partitions") + 1])
    shares = [_share(ours()[name]) for name in ("watch-1", "watch-2")]
    owned = [{job for job in jobs if share.has(partition_of(job, partitions), partitions)} for share in shares]
    assert all(owned)
    assert sum(map(len, owned)) == len(jobs)


def _share(words: list[str]) -> Share:
    return ShareOf().convert(words[words.index("--share") + 1], None, None)


def test_flow_processes_of_the_composition_keep_their_stores_apart() -> None:
    flows = {name: service for name, service in services().items() if name.startswith("watch")}
    kept = [volume.split(":")[0] for service in flows.values() for volume in service["volumes"]]
    assert len(set(kept)) == len(flows) == 2
