"""Markers that policy ranks and the driver print on their way through a call (MarinSkyRL), and how the model is set up.

They tell where a call stands when it stands still. A barrier that was reached is no wedge, and no progress either: only
the ungated forward marker is (GATES, Words). Probes (`[EPDIAG]`, `[GRPMM]`) are science and say nothing of life.
"""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.signal import Noted
from extractors.trainer import Marker, RankMarker

_BARRIERS = {
    "WORKER_DRAIN_BARRIER": Marker.DRAIN_BARRIER,
    "WORKER_FORWARD_DISPATCH_RDV": Marker.DISPATCH_RENDEZVOUS,
}


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=tuple(f"{name} rank=" for name in _BARRIERS),
    regex=rf"({'|'.join(_BARRIERS)}) rank=(\d+)",
    samples={
        "(FSDPPolicyWorkerBase pid=6001, ip=10.0.1.9) WORKER_DRAIN_BARRIER rank=9": RankMarker(Marker.DRAIN_BARRIER, 9),
        "(FSDPPolicyWorkerBase pid=6001) WORKER_FORWARD_DISPATCH_RDV rank=3 [repeated 15x across cluster]": RankMarker(
            Marker.DISPATCH_RENDEZVOUS, 3
        ),
    },
    rejects=("WORKER_DRAIN_BARRIER rank=all", "await WORKER_DRAIN_BARRIER rank=3"),
)
def barrier_reached(found: Any) -> RankMarker:
    """A policy rank reached a barrier. In the aggregated log Ray swallows the copies of the others: an absent rank is
    told by the per-actor files only."""
    return RankMarker(_BARRIERS[found[1]], int(found[2]))


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=("MESH_DISPATCH method=",),
    regex=r"MESH_DISPATCH method=\w+ issued [\w.]+\(\) to \d+ actors: \[",
    samples={
        "(skyrl_entrypoint pid=5150) MESH_DISPATCH method=forward issued forward.remote() to 16 actors: "
        "['(dp=0,sp=0,tp=0,pp=0)', '(dp=1,sp=0,tp=0,pp=0)']": RankMarker(Marker.MESH_DISPATCH, None),
    },
    rejects=("MESH_DISPATCH method=forward waits",),
)
def mesh_dispatched(found: Any) -> RankMarker:
    """The driver issued a call to all actors of the mesh. Whether one took it up, its own marker says."""
    return RankMarker(Marker.MESH_DISPATCH, None)


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=("R3_RESIDENT_SET rank=", "R3_RESIDENT_SET method="),
    regex=r"R3_RESIDENT_SET (?:rank=(\d+)|method=\w+ dp=\d+) nbytes=\d+",
    samples={
        "(FSDPPolicyWorkerBase pid=6001) R3_RESIDENT_SET rank=3 nbytes=98304 dtype=torch.uint8 shape=(4, 24, 96, 8)": (
            RankMarker(Marker.REPLAY_RESIDENT, 3)
        ),
        "R3_RESIDENT_SET method=forward dp=1 nbytes=98304 dtype=torch.uint8": RankMarker(Marker.REPLAY_RESIDENT, None),
    },
    rejects=("R3_RESIDENT_SET rank=3 nbytes=unknown",),
)
def replay_resident(found: Any) -> RankMarker:
    """The payload of the router replay lies in the object store (driver) or on the rank (worker)."""
    return RankMarker(Marker.REPLAY_RESIDENT, int(found[1]) if found[1] else None)


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=("[MoE-PATH] experts forward via ",),
    regex=r"\[MoE-PATH\] experts forward via (grouped_mm|for[_-]loop)",
    samples={
        "(FSDPPolicyWorkerBase pid=6001) [MoE-PATH] experts forward via grouped_mm (w1=DTensor, use_grouped_mm=True)": (
            RankMarker(Marker.EXPERTS_GROUPED, None)
        ),
        "[MoE-PATH] experts forward via for_loop (w1=DTensor, use_grouped_mm=False)": RankMarker(
            Marker.EXPERTS_LOOPED, None
        ),
        "[MoE-PATH] experts forward via for-loop": RankMarker(Marker.EXPERTS_LOOPED, None),
    },
    rejects=("[MoE-PATH] experts forward via magic", "[EPDIAG] ts=1.0 rank=3/16 experts forward via grouped_mm"),
)
def experts_forward(found: Any) -> RankMarker:
    """Which kernel a mixture-of-experts layer takes; a loop is slow. It comes deep in the forward, up to hours after
    its begin: its absence early is no fault, and it names no rank."""
    looped = found[1].startswith("for")
    return RankMarker(Marker.EXPERTS_LOOPED if looped else Marker.EXPERTS_GROUPED, None)


_SETUP = (
    ("[MoE] grouped-GEMM swap active", "moe-grouped-gemm"),
    ("[MoE] set output_router_logits as True", "moe-router-logits"),
    ("[gdn] masked fla-availability", "gdn-fallback-masked"),
    ("[gdn] engaged FlashQLA fused kernel on ", "gdn-fused-kernel"),
)


@pattern(
    "trainer",
    Nature.FACT,
    hints=tuple(start for start, _ in _SETUP),
    samples={
        "(FSDPPolicyWorkerBase pid=6001) [MoE] grouped-GEMM swap active — leaving output_router_logits False (aux-loss "
        "dropped)": Noted("moe-grouped-gemm"),
        "[MoE] set output_router_logits as True": Noted("moe-router-logits"),
        "[gdn] masked fla-availability False (was=True)": Noted("gdn-fallback-masked"),
        "[gdn] engaged FlashQLA fused kernel on 24 GatedDeltaNet modules": Noted("gdn-fused-kernel"),
    },
    rejects=("It has [gdn] engaged FlashQLA fused kernel on 24 modules",),
)
def policy_model_setup(text: str) -> Noted | None:
    """How the policy model's layers are built, once per rank. A gated-delta-net model without the fused kernel holds
    Python's lock through a forward of hours."""
    return next((Noted(kind) for start, kind in _SETUP if text.startswith(start)), None)


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=("grad_norm is not finite: ",),
    regex=r"grad_norm is not finite: ",
    samples={
        "(FSDPPolicyWorkerBase pid=6001) 2026-03-04 10:00:00.000 | WARNING  | skyrl_train.distributed.fsdp_strategy:"
        "optimizer_step:120 - grad_norm is not finite: nan": Noted("grad-norm-not-finite"),
    },
    rejects=("The grad_norm is not finite: see above",),
)
def gradient_not_finite(found: Any) -> Noted:
    """A policy rank skips an optimizer step. The step's metrics, which gate D weighs, say so too."""
    return Noted("grad-norm-not-finite")


PATTERNS = (
    barrier_reached,
    mesh_dispatched,
    replay_resident,
    experts_forward,
    policy_model_setup,
    gradient_not_finite,
)
