"""TLS and SASL against a real broker: who is let in, and what somebody is told who is not."""

import pytest

from dataflow.kafka import BrokerError, Trouble
from dataflow.kafka_settings import brokers_of
from dataflow.kafka_topics import topics_of
from tests.kafka.broker import PASSWORD, USER, Broker

SECONDS = 4.0
"""In which a refusal is heard; what is guessed from silence takes all of them."""


def access(broker: Broker, **changed: str) -> dict[str, str]:
    told = {
        "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "KAFKA_SASL_MECHANISM": "PLAIN",
        "KAFKA_SASL_USERNAME": USER,
        "KAFKA_SASL_PASSWORD": PASSWORD,
        "KAFKA_SSL_CAFILE": str(broker.certificate),
    }
    return {name: value for name, value in (told | changed).items() if value}


def look(servers: str, environment: dict[str, str], seconds: float = SECONDS) -> None:
    with topics_of(brokers_of(servers, environment), seconds) as topics:
        topics.standing("wedgewatch.lines")


def test_user_with_the_right_password_and_certificate_is_let_in(own_broker: Broker) -> None:
    look(own_broker.secure_bootstrap, access(own_broker))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"KAFKA_SASL_PASSWORD": "guess"}, "the credentials are refused"),
        ({"KAFKA_SASL_USERNAME": "nobody"}, "the credentials are refused"),
        ({"KAFKA_SASL_MECHANISM": "SCRAM-SHA-256"}, "the brokers don't offer this SASL mechanism"),
        ({"KAFKA_SSL_CAFILE": ""}, "the broker's certificate is not trusted"),
    ],
)
def test_wrong_credentials_are_named_in_one_line(own_broker: Broker, changed: dict[str, str], says: str) -> None:
    with pytest.raises(BrokerError, match=says) as refused:
        look(own_broker.secure_bootstrap, access(own_broker, **changed))
    assert refused.value.trouble is Trouble.DENIED
    assert "\n" not in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_speaking_plainly_where_tls_is_wanted_is_guessed(own_broker: Broker) -> None:
    with pytest.raises(BrokerError, match="perhaps TLS is wanted, see KAFKA_SECURITY_PROTOCOL"):
        look(own_broker.secure_bootstrap, {}, 1.5)


def test_speaking_tls_where_none_is_spoken_is_guessed(own_broker: Broker) -> None:
    with pytest.raises(BrokerError, match="no TLS is spoken there, see KAFKA_SECURITY_PROTOCOL"):
        look(own_broker.bootstrap, access(own_broker), 1.5)
