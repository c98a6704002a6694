"""Which part of a job a process is, by its title, actor class or command line."""

from enum import StrEnum
from functools import lru_cache


class ProcessRole(StrEnum):
    """What a process does in the job. Reference and critic workers count as policy: they share its ranks."""

    POLICY = "policy"
    ENGINE = "engine"
    COORDINATOR = "coordinator"
    DRIVER = "driver"
    UNKNOWN = "unknown"


_TITLES: tuple[tuple[str, ProcessRole], ...] = (
    ("RolloutCoordinator", ProcessRole.COORDINATOR),
    ("PolicyWorkerBase", ProcessRole.POLICY),
    ("RefWorkerBase", ProcessRole.POLICY),
    ("CriticWorkerBase", ProcessRole.POLICY),
    ("FSDPPolicy", ProcessRole.POLICY),
    ("MegatronPolicy", ProcessRole.POLICY),
    ("VLLMInferenceEngine", ProcessRole.ENGINE),
    ("RayWorkerWrapper", ProcessRole.ENGINE),
    ("VLLM::", ProcessRole.ENGINE),
    ("EngineCore", ProcessRole.ENGINE),
    ("VllmWorker", ProcessRole.ENGINE),
    ("ray::FSDP", ProcessRole.POLICY),
    ("ray::Megatron", ProcessRole.POLICY),
    ("ray::DeepSpeed", ProcessRole.POLICY),
    ("ray::AsyncVLLM", ProcessRole.ENGINE),
    ("skyrl_entrypoint", ProcessRole.DRIVER),
    ("skyrl_train.entrypoints", ProcessRole.DRIVER),
)
"""Literals of titles, most telling first. The kernel cuts a title to 15 characters (`ray::FSDPPolicy`)."""


@lru_cache(maxsize=4096)
def process_role(title: str) -> ProcessRole:
    """The role that a process title, actor class or command line names."""
    for literal, role in _TITLES:
        if literal in title:
            return role
    return ProcessRole.UNKNOWN
