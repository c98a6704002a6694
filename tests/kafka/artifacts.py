"""Apache Kafka from Maven's artifacts (ci/kafka/pom.xml), and why it can't be had where it can't.

The first run downloads 56 MB into ~/.m2, in a quarter of a minute; later ones take what is there.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

POM = Path(__file__).resolve().parents[2] / "ci" / "kafka" / "pom.xml"
CLASSPATH = POM.parent / "target" / "classpath"
REQUIRED = "WEDGEWATCH_KAFKA"
"""With this variable at `required` the tests that can't have a broker fail; without it they are skipped."""
DOWNLOAD_SECONDS = 300.0


class NoKafka(Exception):
    """A broker can't be had. The message says why, and what would help."""


def refused(why: NoKafka) -> "pytest.skip.Exception":
    """Ends the test: as skipped, or as failed where a broker is required."""
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(f"{REQUIRED}=required, but {why}", pytrace=False)
    pytest.skip(str(why))


def classpath() -> str:
    """Where the broker's classes lie. Raises NoKafka."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise NoKafka(
                f"there is no {tool} here: a broker needs Java 17 and Maven (or name yours in KAFKA_BOOTSTRAP)"
            )
    if CLASSPATH.exists() and CLASSPATH.stat().st_mtime > POM.stat().st_mtime:
        known = CLASSPATH.read_text().strip()
        if all(Path(jar).exists() for jar in known.split(os.pathsep)):
            return known
    why = _resolved("--offline") and _resolved()
    if why:
        raise NoKafka(f"Maven can't get Kafka's artifacts: {why}")
    return CLASSPATH.read_text().strip()


def _resolved(*options: str) -> str:
    """Has Maven write the classpath down, in one step; why it can't, or "" where it did."""
    made = CLASSPATH.with_name(f"classpath.{os.getpid()}")
    command = ["mvn", "--batch-mode", "--quiet", *options, "--file", str(POM), "dependency:build-classpath"]
    try:
        run = subprocess.run(
            [*command, f"-Dmdep.outputFile={made}"], capture_output=True, text=True, timeout=DOWNLOAD_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"it came to no end within {DOWNLOAD_SECONDS:.0f} s"
    if run.returncode or not made.exists():
        return next(iter(run.stdout.strip().splitlines()), "it says nothing")
    made.replace(CLASSPATH)
    return ""
