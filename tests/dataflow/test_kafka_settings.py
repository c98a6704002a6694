"""How the brokers are named, and what is said of a setting that can't be."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

from dataflow.kafka import BrokerError, Trouble, broker_error, partition_of
from dataflow.kafka_settings import VARIABLES, Brokers, brokers_of
from dataflow.outcome import SettingsError

LOGIN = {
    "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "KAFKA_SASL_USERNAME": "mara",
    "KAFKA_SASL_PASSWORD": "open-sesame",
}


def test_option_counts_before_the_environment() -> None:
    assert brokers_of("a:1, b:2", {"KAFKA_BOOTSTRAP": "c:3"}).servers == ("a:1", "b:2")
    assert brokers_of(None, {"KAFKA_BOOTSTRAP": "c:3"}).name == "c:3"


def test_password_is_never_shown() -> None:
    brokers = brokers_of("a:1", LOGIN)
    assert brokers.options["sasl_plain_password"] == "open-sesame"
    assert brokers.options["sasl_mechanism"] == "SCRAM-SHA-512"
    assert "open-sesame" not in repr(brokers)


def test_password_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("open-sesame\n")
    told = {**LOGIN, "KAFKA_SASL_PASSWORD": "", "KAFKA_SASL_PASSWORD_FILE": str(tmp_path / "secret")}
    assert brokers_of("a:1", told).options["sasl_plain_password"] == "open-sesame"


@pytest.mark.parametrize(
    ("servers", "environment", "says"),
    [
        ("", {}, "no brokers are named; say --brokers HOST:PORT, or set KAFKA_BOOTSTRAP"),
        ("broker", {}, "--brokers: 'broker' is no broker; write HOST:PORT[,HOST:PORT]"),
        (None, {"KAFKA_BOOTSTRAP": "a:99999"}, "KAFKA_BOOTSTRAP: 'a:99999' is no broker; write HOST:PORT[,HOST:PORT]"),
        ("a:1", {"KAFKA_SASL_PASWORD": "x"}, "KAFKA_SASL_PASWORD: unknown variable; is KAFKA_SASL_PASSWORD meant?"),
        ("a:1", {"KAFKA_TOPIC_PREFIX": "a/b"}, "KAFKA_TOPIC_PREFIX: 'a/b' can't begin a topic's name"),
        (
            "a:1",
            {"KAFKA_SECURITY_PROTOCOL": "TLS"},
            "KAFKA_SECURITY_PROTOCOL: 'TLS' is unknown; it must be",
        ),
        ("a:1", {**LOGIN, "KAFKA_SASL_MECHANISM": "GSSAPI"}, "KAFKA_SASL_MECHANISM: 'GSSAPI' is unknown; it must be"),
        ("a:1", {**LOGIN, "KAFKA_SASL_USERNAME": ""}, "KAFKA_SASL_USERNAME: missing, and needed for SASL_SSL"),
        ("a:1", {**LOGIN, "KAFKA_SASL_PASSWORD": ""}, "KAFKA_SASL_PASSWORD: missing, and needed for SASL_SSL"),
        (
            "a:1",
            {"KAFKA_SASL_USERNAME": "mara"},
            "KAFKA_SASL_USERNAME: is set, but KAFKA_SECURITY_PROTOCOL is PLAINTEXT; it must be SASL_SSL or SASL_PLAIN",
        ),
        (
            "a:1",
            {**LOGIN, "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_SSL_CAFILE": "/ca"},
            "KAFKA_SSL_CAFILE: is set, but KAFKA_SECURITY_PROTOCOL is SASL_PLAINTEXT; it must be SSL or SASL_SSL",
        ),
        (
            "a:1",
            {"KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_CAFILE": "/nowhere/ca.pem"},
            "KAFKA_SSL_CAFILE: /nowhere/ca.pem: can't be used: No such file or directory",
        ),
        (
            "a:1",
            {"KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_KEYFILE": "/key.pem"},
            "KAFKA_SSL_KEYFILE: is set without KAFKA_SSL_CERTFILE, its certificate",
        ),
        (
            "a:1",
            {**LOGIN, "KAFKA_SASL_PASSWORD": "", "KAFKA_SASL_PASSWORD_FILE": "/nowhere/secret"},
            "KAFKA_SASL_PASSWORD_FILE: /nowhere/secret: cannot be read: No such file or directory",
        ),
    ],
)
def test_wrong_setting_is_one_line_that_names_its_variable(
    servers: str | None, environment: dict[str, str], says: str
) -> None:
    with pytest.raises(SettingsError) as error:
        brokers_of(servers, environment)
    assert error.value.message.startswith(says)
    assert "\n" not in error.value.message


def test_certificate_that_is_no_pem_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    told = {"KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_CAFILE": str(tmp_path / "ca.pem")}
    with pytest.raises(SettingsError, match=r"KAFKA_SSL_CAFILE: .*ca\.pem: can't be used: no usable PEM"):
        brokers_of("a:1", told)


@pytest.mark.skipif(which("openssl") is None, reason="there is no openssl here to make a key with")
def test_key_with_a_password_asks_nobody_for_it(tmp_path: Path) -> None:
    certificate, key = tmp_path / "own.pem", tmp_path / "own.key"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-subj", "/CN=x", "-passout", "pass:sesame"]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    told = {
        "KAFKA_SECURITY_PROTOCOL": "SSL",
        "KAFKA_SSL_CERTFILE": str(certificate),
        "KAFKA_SSL_KEYFILE": str(key),
    }
    with pytest.raises(SettingsError, match=r"KAFKA_SSL_CERTFILE: .*can't be used"):
        brokers_of("a:1", told)
    brokers_of("a:1", {**told, "KAFKA_SSL_KEY_PASSWORD": "sesame"})


def test_every_variable_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "kafka.md").read_text()
    assert [name for name in VARIABLES if f"`{name}`" not in page] == []


@pytest.mark.parametrize(("job", "partition"), [("/mira/rl-heron-9", 1), ("/alice/rl-demo", 0), ("", 0)])
def test_partition_of_a_job_is_the_same_on_every_machine(job: str, partition: int) -> None:
    assert partition_of(job, 6) == partition


def test_error_without_a_warning_of_the_library_is_told_in_its_own_words() -> None:
    from kafka.errors import KafkaStorageError

    error = broker_error(Brokers(("a:1",)), KafkaStorageError(), float("inf"))
    assert isinstance(error, BrokerError)
    assert error.trouble is Trouble.UNREACHABLE
    assert str(error).startswith("a:1: KafkaStorageError")
