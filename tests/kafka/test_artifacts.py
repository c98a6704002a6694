"""Where no broker can be had the tests say why: as skipped, or as failed where one is required."""

from pathlib import Path

import pytest

from tests.kafka import artifacts
from tests.kafka.artifacts import REQUIRED, NoKafka, classpath, refused


@pytest.mark.parametrize("missing", ["java", "mvn"])
def test_missing_tool_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts.shutil, "which", lambda tool: None if tool == missing else f"/usr/bin/{tool}")
    with pytest.raises(NoKafka, match=f"there is no {missing} here"):
        classpath()


def test_artifacts_that_cannot_be_had_are_told_in_mavens_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "mvn"
    tool.write_text("#!/bin/sh\necho '[ERROR] the repository is not there'\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(artifacts, "CLASSPATH", tmp_path / "classpath")
    monkeypatch.setattr(artifacts.shutil, "which", lambda tool: f"/usr/bin/{tool}")
    with pytest.raises(NoKafka, match=r"Maven can't get Kafka's artifacts: \[ERROR\] the repository is not there"):
        classpath()


def test_tests_are_skipped_with_the_reason_unless_a_broker_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no java"):
        refused(NoKafka("there is no java here"))
    monkeypatch.setenv(REQUIRED, "required")
    with pytest.raises(pytest.fail.Exception, match="no java"):
        refused(NoKafka("there is no java here"))


def test_ci_requires_a_broker() -> None:
    script = (Path(__file__).parents[2] / ".ci" / "run").read_text()
    assert f"export {REQUIRED}=required\n" in script
