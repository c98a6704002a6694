"""Harbor's exception names: whose trouble each one is. Data, said once, for gate C (GATES, Gate C rules 3–6).

Sources: Harbor 0.26 `trial/errors.py`, `verifier/verifier.py`, `models/trial/error_policy.py`; Daytona's and
litellm's own exception classes; MarinSkyRL's `harbor_config.py` and `terminal_bench_generator.py`; OpenThoughts'
`infra_errors.py`. A name of no table is UNKNOWN, and nothing is concluded from it.
"""

from enum import StrEnum


class Trouble(StrEnum):
    """Whose trouble an exception is. Only INFRA, ENDPOINT and CONFIG are infrastructure (gate C rule 4)."""

    INFRA = "infra"
    VERIFIER = "verifier"
    AGENT = "agent"
    ENDPOINT = "endpoint"
    CONFIG = "config"
    UNKNOWN = "unknown"


ADD_TESTS = "AddTestsDirError"
"""The tests could not be copied in, since there was no sandbox to copy them into (gate C rule 3)."""

_NAMES: dict[Trouble, str] = {
    # Harbor 0.26: retried and never graded; the fork masks them. Daytona's SDK classes belong here as well.
    Trouble.INFRA: """
        AddTestsDirError AgentEnvironmentTimeoutError AgentKilledBySignalError AgentSetupTimeoutError
        ArtifactUploadTimeoutError ArtifactWriterBacklogError BridgeOutageError CancelledError
        ContextManagementInfrastructureError DaytonaAuthenticationError DaytonaAuthorizationError DaytonaError
        DaytonaNotFoundError DaytonaRateLimitError DaytonaSandboxStopError DaytonaValidationError
        DownloadVerifierDirError EnrootMemoryLimitExceededError EnvironmentStartTimeoutError HealthcheckError
        MemoryLimitExceededError OrchestratorNotStarted RuntimeRequestError SSHAccessError SandboxBuildFailedError
        SandboxLikelyOutOfMemoryError SnapshotQuotaExceeded TmuxBatchProtocolError TmuxCommandError
        TmuxSessionEndedError TrialNotScoredError TrialTimeoutError
    """,
    # Harbor 0.26: graded, since the verifier was reached. Never infrastructure.
    Trouble.VERIFIER: """
        RewardFileEmptyError RewardFileNotFoundError VerificationNotCompletedError VerifierOutputParseError
        VerifierRuntimeError VerifierTimeoutError
    """,
    # What an agent may do in the course of an attempt. The harness passes the first two through: benign in any number.
    Trouble.AGENT: """
        AgentTimeoutError ContentPolicyViolationError ContextBudgetExceededError ContextLengthExceededError
        ContextWindowExceededError NonZeroAgentExitCodeError OutputLengthExceededError PassthroughWithoutLogprobs
        TurnCapExhaustedError
    """,
    # The model's server or the way to it; steady, it is a serving fault. litellm's and OpenAI's names.
    Trouble.ENDPOINT: """
        APIConnectionError APIError APIResponseValidationError APITimeoutError BadGatewayError ConnectionError
        InternalServerError LLMRequestTimeoutError NetworkConnectionError NetworkError
        OpenAITransportConnectTimeoutError RateLimitError ServiceUnavailableError Timeout
    """,
    # Harbor 0.26: neither retried nor graded. No relaunch passes it.
    Trouble.CONFIG: """
        AgentAuthenticationError AuthenticationError BadRequestError BudgetExceededError InvalidRequestError
        MissingExtraError ModelAuthenticationError ModelNotFoundError NotFoundError PermissionDeniedError
        UnprocessableEntityError UnsupportedModelParametersError UnsupportedParamsError
    """,
}

_PREFIXES: tuple[tuple[str, Trouble], ...] = (
    ("OrchestratorFailure_", Trouble.INFRA),
    ("OrchestratorRetryFailure_", Trouble.INFRA),
    ("EvalOrchestratorFailure_", Trouble.INFRA),
    ("Daytona", Trouble.INFRA),
    ("GKE", Trouble.INFRA),
    ("Api", Trouble.ENDPOINT),
)
"""Families: the generator's own names carry the cause after the underscore, later SDKs add members."""

TROUBLES: dict[str, Trouble] = {name: trouble for trouble, names in _NAMES.items() for name in names.split()}

INFRASTRUCTURE = frozenset({Trouble.INFRA, Trouble.ENDPOINT, Trouble.CONFIG})

FIXES: dict[Trouble, str] = {
    Trouble.INFRA: "restore what the quoted exception names (the environment provider's credentials, quota or health) "
    "and prove it by creating one sandbox",
    Trouble.ENDPOINT: "find why the agents can't reach the model's endpoint (address, port, engine health) and prove "
    "it by one completion request from a rollout host",
    Trouble.CONFIG: "correct the setting that the quoted exception names (key, model name or parameter); no relaunch "
    "passes it unchanged",
}


def trouble_of(exception: str) -> Trouble:
    """Whose trouble an exception is; the name may be dotted (`litellm.Timeout`). UNKNOWN where no table has it."""
    name = exception.rpartition(".")[2]
    if name in TROUBLES:
        return TROUBLES[name]
    return next((trouble for prefix, trouble in _PREFIXES if name.startswith(prefix)), Trouble.UNKNOWN)


def is_infrastructure(exception: str) -> bool:
    """Whether it tells of the machinery around the attempts, not of an attempt or its verifier."""
    return trouble_of(exception) in INFRASTRUCTURE
