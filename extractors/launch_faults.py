"""What stops a driver within minutes of its launch: a model that could not be fetched, task files that are not there.

Serves the causal roles of GATES.md. A refused configuration is read in `facts`.
"""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Benign, Fault


@pattern(
    "launcher",
    Nature.FAULT,
    role=Role.EITHER,
    hints=(
        " does not appear to have a file named ",
        "OfflineModeIsEnabled",
        " Client Error: Too Many Requests for url: https://huggingface.co",
        " for url: https://huggingface.co",
    ),
    regex=r"(?:[\w.]+\.)?(?P<type>\w+(?:Error|Enabled))?(?:: )?(?P<what>(?P<repo>[\w./-]{1,200}) does not appear to "
    r"have a file named [\w.*-]+|(?<=OfflineModeIsEnabled: )[^\n]*|(?<=OfflineModeIsEnabled)$"
    r"|(?:429|50[0234]) (?:Client|Server) Error: [^\n]{0,80}? for url: https://huggingface\.co)",
    samples={
        "OSError: org/model-14b does not appear to have a file named pytorch_model.bin or model.safetensors.": Fault(
            "model_unavailable",
            detail="org/model-14b does not appear to have a file named pytorch_model.bin",
            exception="OSError",
            entity="org/model-14b",
        ),
        "org/model-14b does not appear to have a file named model.safetensors": Fault(
            "model_unavailable",
            detail="org/model-14b does not appear to have a file named model.safetensors",
            entity="org/model-14b",
        ),
        "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/org/model-14b: "
        "offline mode is enabled.": Fault(
            "model_unavailable",
            detail="Cannot reach https://huggingface.co/api/models/org/model-14b: offline mode is enabled.",
            exception="OfflineModeIsEnabled",
        ),
        "huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: https://huggingface.co/api/"
        "models/org/model-14b": Fault(
            "model_unavailable",
            detail="504 Server Error: Gateway Time-out for url: https://huggingface.co",
            exception="HfHubHTTPError",
        ),
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/org/d": (
            Fault(
                "model_unavailable",
                detail="429 Client Error: Too Many Requests for url: https://huggingface.co",
                exception="HTTPError",
            )
        ),
    },
    rejects=(
        "It seems that org/model does not appear to have a file named model.safetensors",
        "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://huggingface.co/org/model-14b",
        "HTTP 504 for url: https://huggingface.co",
    ),
)
def model_unavailable(found: Any) -> Fault:
    """A model or data set could not be fetched (transformers, huggingface_hub): as a rule the hub or a mirror was busy,
    and one more launch passes. A stage of the supervisor that retries says so itself."""
    return Fault(
        "model_unavailable", found["what"][:240], exception=found["type"] or "", entity=(found["repo"] or "")[:200]
    )


@pattern(
    "launcher",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("/task.toml",),
    regex=r"FileNotFoundError: (?:\[Errno 2\] No such file or directory: )?'?(?P<path>[^\s']{1,400}/task\.toml)'?",
    samples={
        "FileNotFoundError: [Errno 2] No such file or directory: '/mnt/tasks/t-12/task.toml'": Fault(
            "task_files_missing", "/mnt/tasks/t-12/task.toml", "FileNotFoundError", entity="task.toml"
        ),
        "FileNotFoundError: /mnt/tasks/t-12/task.toml": Fault(
            "task_files_missing", "/mnt/tasks/t-12/task.toml", "FileNotFoundError", entity="task.toml"
        ),
    },
    rejects=("read /mnt/tasks/t-12/task.toml", "FileNotFoundError: /mnt/tasks/t-12/notes.toml"),
)
def task_files_missing(found: Any) -> Fault:
    """A worker does not have the tasks that it is to run: trials fail before they begin, and every reward is 0."""
    return Fault("task_files_missing", found["path"][:240], "FileNotFoundError", entity="task.toml")


@pattern(
    "launcher",
    Nature.BENIGN,
    hints=("HYDRA_FULL_ERROR=1", "full_key: ", "object_type="),
    regex=r"Set the environment variable HYDRA_FULL_ERROR=1|\s+full_key: [\w.]+\s*$|\s+object_type=\w+\s*$",
    samples={
        "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.": Benign("hydra-advice"),
        "    full_key: generator.sampler": Benign("hydra-advice"),
        "    object_type=dict": Benign("hydra-advice"),
    },
    rejects=("export HYDRA_FULL_ERROR=1", "my full_key: generator.sampler"),
)
def hydra_advice(found: Any) -> Benign:
    """What Hydra prints behind its refusal. Advice anchors nothing: the line before it names the key."""
    return Benign("hydra-advice")


PATTERNS = (model_unavailable, task_files_missing, hydra_advice)
