"""vLLM lines that look like death and are not: waiting workers, rejected prompts, unknown variables."""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.signal import Benign


@pattern(
    "vllm",
    Nature.BENIGN,
    hints=("No available shared memory broadcast block found",),
    regex=r"No available shared memory broadcast block found in \d+ seconds?\.",
    samples={
        "DEBUG 03-14 09:30:00 [shm_broadcast.py:430] No available shared memory broadcast block found in 60 second.": (
            Benign("shared-memory-broadcast-wait")
        ),
        "(EngineCore_DP0 pid=71) INFO 03-14 09:30:00 [shm_broadcast.py:466] No available shared memory broadcast block "
        "found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming "
        "work (e.g. compilation)": Benign("shared-memory-broadcast-wait"),
        "INFO 03-14 09:30:00 [shm_broadcast.py:542] No available shared memory broadcast block found in 600 seconds. "
        "This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, "
        "weight/kv cache quantization).": Benign("shared-memory-broadcast-wait"),
    },
    rejects=('{"role": "tool", "content": "No available shared memory broadcast block found in 60 seconds."}',),
)
def shared_memory_broadcast_wait(found: Any) -> Benign:
    """A worker that waits for its engine, again at each interval (VLLM_RINGBUFFER_WARNING_INTERVAL). It goes with a
    hang as with any long wait, and proves neither."""
    return Benign("shared-memory-broadcast-wait")


@pattern(
    "vllm",
    Nature.BENIGN,
    hints=("Unknown vLLM environment variable",),
    regex=r"Unknown vLLM environment variable",
    samples={
        "WARNING 03-14 09:10:00 [envs.py:1720] Unknown vLLM environment variable detected: VLLM_SITE_LABEL": (
            Benign("unknown-vllm-variable")
        ),
        "Unknown vLLM environment variable detected: VLLM_SITE_LABEL": Benign("unknown-vllm-variable"),
        "WARNING 03-14 09:10:00 [envs.py:1811] Unknown vLLM environment variable VLLM_ALLOW_ROUTED_EXPERTS_DCP": (
            Benign("unknown-vllm-variable")
        ),
    },
    rejects=("grep: Unknown vLLM environment variable: no such file",),
)
def unknown_vllm_variable(found: Any) -> Benign:
    """A variable that begins with VLLM_ and that this version does not know; a patched build or a launcher sets it."""
    return Benign("unknown-vllm-variable")


@pattern(
    "vllm",
    Nature.BENIGN,
    hints=("Input-overflow rejected", "maximum context length", "continue_final_message failed"),
    regex=r"(?:Input-overflow rejected by vLLM serving"
    r"|continue_final_message failed after"
    r"|(?:[\w.]*(?:VLLMValidationError|ValueError|BadRequestError)\b:? ?)[^\n]{0,400}?maximum context length"
    r"|This model's maximum context length is)",
    samples={
        "2031-03-14 09:30:00.120 | WARNING  | skyrl_train.inference_engines.vllm.vllm_engine:chat:610 - Input-overflow "
        "rejected by vLLM serving (returning 400, non-retryable): 16385 > 16384": Benign("context-length-rejection"),
        "ERROR 03-14 09:30:00 [serving_chat.py:310] vllm.exceptions.VLLMValidationError: This model's maximum context "
        "length is 16384 tokens. However, you requested 16385 tokens": Benign("context-length-rejection"),
        "ValueError: This model's maximum context length is 16384 tokens.": Benign("context-length-rejection"),
        "WARNING 03-14 09:30:00 [chat_utils.py:1702] continue_final_message failed after 2 attempts": (
            Benign("context-length-rejection")
        ),
    },
    rejects=(
        "Trajectory TrajectoryID(instance_id='t', repetition_id=1) failed with Harbor exception: This model's maximum "
        "context length is 16384 tokens.",
        "ValueError: max_model_len 16384 is too small",
    ),
)
def context_length_rejection(found: Any) -> Benign:
    """A prompt longer than the model's context, refused with a 400: the agent's overflow, passed through by design."""
    return Benign("context-length-rejection")


@pattern(
    "vllm",
    Nature.BENIGN,
    hints=("`torch_dtype` is deprecated", "FutureWarning: ", "The current process just got forked"),
    regex=r"(?:`torch_dtype` is deprecated|(?:/[^\n:\"{]{1,300}:\d+: )?FutureWarning: "
    r"|huggingface/tokenizers: The current process just got forked)",
    samples={
        "`torch_dtype` is deprecated! Use `dtype` instead!": Benign("deprecation-warning"),
        "/opt/venv/lib/python3.12/site-packages/torch/cuda/__init__.py:61: FutureWarning: The pynvml package is "
        "deprecated.": Benign("deprecation-warning"),
        "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. "
        "Disabling parallelism to avoid deadlocks...": Benign("deprecation-warning"),
    },
    rejects=("I ignore the FutureWarning: it is old", "except FutureWarning: pass"),
)
def deprecation_warning(found: Any) -> Benign:
    """Warnings of transformers, tokenizers and torch while models load: noise."""
    return Benign("deprecation-warning")


PATTERNS = (shared_memory_broadcast_wait, unknown_vllm_variable, context_length_rejection, deprecation_warning)
