"""Where the brokers are and how one is let in: from `--brokers` and the environment (docs/kafka.md).

A wrong setting fails at the start, in one line that names the variable.
"""

import difflib
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dataflow.opened import reason
from dataflow.outcome import SettingsError

BOOTSTRAP = "KAFKA_BOOTSTRAP"
PROTOCOL = "KAFKA_SECURITY_PROTOCOL"
MECHANISM = "KAFKA_SASL_MECHANISM"
USERNAME = "KAFKA_SASL_USERNAME"
PASSWORD = "KAFKA_SASL_PASSWORD"
PASSWORD_FILE = "KAFKA_SASL_PASSWORD_FILE"
CA_FILE = "KAFKA_SSL_CAFILE"
CERTIFICATE_FILE = "KAFKA_SSL_CERTFILE"
KEY_FILE = "KAFKA_SSL_KEYFILE"
KEY_PASSWORD = "KAFKA_SSL_KEY_PASSWORD"
PREFIX = "KAFKA_TOPIC_PREFIX"
VARIABLES = {
    BOOTSTRAP: "the brokers, HOST:PORT[,HOST:PORT]; `--brokers` counts before it",
    PREFIX: "what the topics' names begin with (`wedgewatch` without it: `wedgewatch.lines`)",
    PROTOCOL: "PLAINTEXT (without it), SSL, SASL_PLAINTEXT or SASL_SSL",
    MECHANISM: "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (without it)",
    USERNAME: "who to the brokers this is",
    PASSWORD: "its password",
    PASSWORD_FILE: "a file with the password, instead (a mounted secret)",
    CA_FILE: "the certificates to trust, as PEM; the system's without it",
    CERTIFICATE_FILE: "the client's own certificate, as PEM, where the brokers ask for one",
    KEY_FILE: "its key, where it is not in the same file",
    KEY_PASSWORD: "the key's password",
}
"""Each variable, and what it says."""
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_PREFIX = "wedgewatch"
MOST_PREFIX = 200
"""Characters; Kafka allows 249 of a topic's whole name."""
_GUARDED = ("KAFKA_SASL_", "KAFKA_SSL_", "KAFKA_SECURITY_", "KAFKA_TOPIC_")
"""Variables that begin so are ours; another one is a slip that would leave a door open."""
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


@dataclass(frozen=True, slots=True)
class Brokers:
    """How the brokers are reached. options is what every client of the library takes; it holds the password, and is not
    shown. prefix is what the topics' names begin with."""

    servers: tuple[str, ...]
    prefix: str = DEFAULT_PREFIX
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The brokers as a message names them."""
        return ",".join(self.servers)


def brokers_of(servers: str | None, environment: Mapping[str, str] = os.environ) -> Brokers:
    """The brokers that are named, or those of the environment. Raises SettingsError."""
    _refuse_unknown(environment)
    said = {name: value for name in VARIABLES if (value := environment.get(name, "").strip())}
    named = _servers(servers, "--brokers") if servers else _servers(said.get(BOOTSTRAP, ""), BOOTSTRAP)
    prefix = said.get(PREFIX, DEFAULT_PREFIX)
    if not set(prefix) <= _NAME or len(prefix) > MOST_PREFIX:
        raise SettingsError(f"{PREFIX}: {prefix!r} can't begin a topic's name (letters, digits, `.`, `_`, `-`)")
    protocol = _one_of(PROTOCOL, said.get(PROTOCOL, "PLAINTEXT"), PROTOCOLS)
    options: dict[str, Any] = {"security_protocol": protocol}
    _refuse_unused(said, protocol)
    if protocol.startswith("SASL"):
        options |= _sasl(said)
    if protocol.endswith("SSL"):
        options["ssl_context"] = _tls(said)
    return Brokers(named, prefix, options)


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    for name in sorted(environment):
        if name.startswith(_GUARDED) and name not in VARIABLES:
            near = difflib.get_close_matches(name, VARIABLES, n=1)
            raise SettingsError(f"{name}: unknown variable{f'; is {near[0]} meant?' if near else ''}")


def _refuse_unused(said: Mapping[str, str], protocol: str) -> None:
    """A credential that would not be used is a slip: the connection would be open, or unsafe."""
    for begin, needs in (("KAFKA_SASL_", "SASL_SSL or SASL_PLAINTEXT"), ("KAFKA_SSL_", "SSL or SASL_SSL")):
        used = protocol in needs.split(" or ")
        if not used and (unused := next((name for name in said if name.startswith(begin)), None)):
            raise SettingsError(f"{unused}: is set, but {PROTOCOL} is {protocol}; it must be {needs}")


def _servers(text: str, where: str) -> tuple[str, ...]:
    servers = tuple(part.strip() for part in text.split(",") if part.strip())
    if not servers:
        raise SettingsError(f"no brokers are named; say --brokers HOST:PORT, or set {BOOTSTRAP}")
    for server in servers:
        host, colon, port = server.rpartition(":")
        if not colon or not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
            raise SettingsError(f"{where}: {server!r} is no broker; write HOST:PORT[,HOST:PORT]")
    return servers


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value.upper() not in known:
        raise SettingsError(f"{name}: {value!r} is unknown; it must be one of {', '.join(known)}")
    return value.upper()


def _sasl(said: Mapping[str, str]) -> dict[str, Any]:
    mechanism = _one_of(MECHANISM, said.get(MECHANISM, "SCRAM-SHA-512"), MECHANISMS)
    if PASSWORD in said and PASSWORD_FILE in said:
        raise SettingsError(f"{PASSWORD_FILE}: {PASSWORD} is set as well; set one of them")
    password = said.get(PASSWORD) or _password_in(said.get(PASSWORD_FILE, ""))
    if USERNAME not in said:
        raise SettingsError(f"{USERNAME}: missing, and needed for {said[PROTOCOL]}")
    if not password:
        raise SettingsError(f"{PASSWORD}: missing, and needed for {said[PROTOCOL]} (or {PASSWORD_FILE})")
    return {"sasl_mechanism": mechanism, "sasl_plain_username": said[USERNAME], "sasl_plain_password": password}


def _password_in(path: str) -> str:
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            password = file.read().rstrip("\r\n")
    except (OSError, ValueError) as error:
        raise SettingsError(f"{PASSWORD_FILE}: {path}: cannot be read: {reason(error)}") from error
    if not password:
        raise SettingsError(f"{PASSWORD_FILE}: {path}: is empty")
    return password


def _tls(said: Mapping[str, str]) -> ssl.SSLContext:
    authority, certificate, key = said.get(CA_FILE), said.get(CERTIFICATE_FILE), said.get(KEY_FILE)
    if key and not certificate:
        raise SettingsError(f"{KEY_FILE}: is set without {CERTIFICATE_FILE}, its certificate")
    try:
        context = ssl.create_default_context(cafile=authority)
    except (OSError, ValueError) as error:
        raise SettingsError(f"{CA_FILE}: {authority}: can't be used: {_why(error)}") from error
    if certificate:
        try:
            # Without a password of ours OpenSSL would ask for one at the terminal.
            context.load_cert_chain(certificate, key, password=said.get(KEY_PASSWORD, ""))
        except (OSError, ValueError) as error:
            where = f"{certificate}{f' and {key}' if key else ''}"
            raise SettingsError(f"{CERTIFICATE_FILE}: {where}: can't be used: {_why(error)}") from error
    return context


def _why(error: Exception) -> str:
    """OpenSSL's words without its places in C."""
    if isinstance(error, ssl.SSLError):
        return f"no usable PEM ({(error.reason or str(error)).replace('_', ' ').lower()})"
    return reason(error)
