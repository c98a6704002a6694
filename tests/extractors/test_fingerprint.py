"""Sameness of failures."""

import pytest

from extractors.fingerprint import entity_digest, fingerprint, plain
from extractors.signal import Fault


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rank 3 timed out after 1800 s", "rank 11 timed out after 1803.2 s"),
        ("at 2026-07-01 10:00:00.120 step 7", "at 2026-07-02 11:30:09.5 step 40"),
        ("connect to 10.0.0.1:4242 failed", "connect to 10.12.7.33:9 failed"),
        ("comm 0x55d0aa of worker 1f2e3d4c5b6a7988", "comm 0x7f00 of worker a09b8c7d6e5f4321"),
        ("Tried to allocate 12.5 GiB. pid 4242", "Tried to allocate 512 MiB. pid 7"),
    ],
)
def test_what_differs_between_runs_is_taken_out(one, other):
    assert plain(one) == plain(other)


def test_different_messages_stay_different():
    assert plain("shape mismatch in lm_head") != plain("shape mismatch in embed")


def test_cause_type_and_site_tell_failures_apart():
    told = Fault("python_exception", "no route to 10.0.0.1", "OSError", "connect")
    assert fingerprint(told) == fingerprint(Fault("python_exception", "no route to 10.9.9.9", "OSError", "connect"))
    for other in (Fault("config_error", *("no route", "OSError", "connect")), Fault("python_exception", "", "OSError")):
        assert fingerprint(told) != fingerprint(other)


def test_entity_is_a_digest_of_its_own():
    one, other = (
        Fault("fabric_error", "link down", entity="mlx5_1"),
        Fault("fabric_error", "link down", entity="mlx5_7"),
    )
    assert fingerprint(one) == fingerprint(other)
    assert entity_digest(one) != entity_digest(other)
    assert entity_digest(Fault("fabric_error")) == ""
