"""Whose trouble an exception of a trial is."""

import pytest

from state.exceptions import Trouble, is_infrastructure, trouble_of


@pytest.mark.parametrize(
    ("exception", "trouble"),
    [
        ("AddTestsDirError", Trouble.INFRA),
        ("daytona.DaytonaAuthenticationError", Trouble.INFRA),
        ("GKEPodEvicted", Trouble.INFRA),
        ("OrchestratorFailure_RuntimeError", Trouble.INFRA),
        ("EvalOrchestratorFailure_RuntimeError", Trouble.INFRA),
        ("VerifierTimeoutError", Trouble.VERIFIER),
        ("VerificationNotCompletedError", Trouble.VERIFIER),
        ("TrialNotScoredError", Trouble.INFRA),
        ("litellm.Timeout", Trouble.ENDPOINT),
        ("litellm.exceptions.BadGatewayError", Trouble.ENDPOINT),
        ("openai.APITimeoutError", Trouble.ENDPOINT),
        ("ApiOverloadedError", Trouble.ENDPOINT),
        ("litellm.UnsupportedParamsError", Trouble.CONFIG),
        ("openai.PermissionDeniedError", Trouble.CONFIG),
        ("litellm.ContextWindowExceededError", Trouble.AGENT),
        ("TurnCapExhaustedError", Trouble.AGENT),
    ],
)
def test_a_known_exception_has_its_class_dotted_or_not(exception: str, trouble: Trouble) -> None:
    assert trouble_of(exception) is trouble
    assert is_infrastructure(exception) is (trouble in (Trouble.INFRA, Trouble.ENDPOINT, Trouble.CONFIG))


@pytest.mark.parametrize("exception", ["UnknownError", "ValueError", "", "AgentError", "MyDaytona"])
def test_of_an_unknown_exception_nothing_is_concluded(exception: str) -> None:
    assert trouble_of(exception) is Trouble.UNKNOWN
