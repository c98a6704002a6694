"""PyTorch's stores and rendezvous: keys that never came, clients that never joined, store owners that left."""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault

_RAISED = (
    r"(?:what\(\): +)?(?:(?:[\w.]+\.)?(?:Dist\w*Error|RuntimeError|TimeoutError): )?(?:\[c10d\] )?(?:\[Rank \d+\] )?"
)
_KEY_WAIT = r"\[\d+\] is setting up NCCL communicators? and retr(?:ie|ei)ving ncclUniqueId"
_WAITED = (
    r"(?:wait timeout after (?P<limit>\d+)ms, keys: (?P<keys>\S+)|Socket Timeout|Timeout waiting for key: (?P<key>\S+))"
)


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("/skyrl/skyrl",),
    regex=_RAISED
    + r"(?:"
    + _KEY_WAIT
    + r"[^\n]{0,400}?)?wait timeout after (?P<limit>\d+)ms, keys: (?P<key>/skyrl/skyrl\S*)",
    samples={
        "torch.distributed.DistBackendError: [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] "
        "via c10d key-value store by key '0', but store->get('/skyrl/skyrl//cuda//0') got error: wait timeout after "
        "1800000ms, keys: /skyrl/skyrl//cuda//0. This may indicate a possible application crash on rank 0 or a network "
        "set up issue.": Fault(
            "weight_sync_bootstrap_timeout",
            "the weight-sync key did not come within 1800 s",
            "DistBackendError",
            "broadcastUniqueNCCLID",
            entity="/skyrl/skyrl//cuda//0",
        ),
        "torch.distributed.DistStoreError: wait timeout after 900000ms, keys: /skyrl/skyrl//cuda//0": Fault(
            "weight_sync_bootstrap_timeout",
            "the weight-sync key did not come within 900 s",
            "DistBackendError",
            "broadcastUniqueNCCLID",
            entity="/skyrl/skyrl//cuda//0",
        ),
    },
    rejects=(
        "torch.distributed.DistBackendError: [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] "
        "via c10d key-value store by key '0', but store->get('0') got error: wait timeout after 600000ms, keys: "
        "/default_pg/0//cuda//0.",
        "python /skyrl/skyrl/train.py",
    ),
)
def weight_sync_bootstrap_timeout(found: Any) -> Fault:
    """The weight-sync group was never built: an engine waited for rank 0's NCCL id under the group's own key. Often
    only the aggregated log says so (torch 2.4 and later; MarinSkyRL names the group `skyrl`)."""
    return Fault(
        "weight_sync_bootstrap_timeout",
        f"the weight-sync key did not come within {int(found['limit']) // 1000} s",
        "DistBackendError",
        "broadcastUniqueNCCLID",
        entity=found["key"].rstrip(".,"),
    )


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("is setting up NCCL communicator", "wait timeout after ", "Timeout waiting for key"),
    regex=_RAISED + r"(?![^\n]{0,500}/skyrl/skyrl)(?:" + _KEY_WAIT + r"[^\n]{0,400}?got error: )?" + _WAITED,
    samples={
        "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] "
        "via c10d key-value store by key '0', but store->get('0') got error: wait timeout after 600000ms, keys: "
        "/default_pg/0//cuda//0. This may indicate a possible application crash on rank 0.": Fault(
            "store_wait_timeout", "a store key did not come within 600 s", entity="/default_pg/0//cuda//0"
        ),
        "torch.distributed.DistBackendError: [5] is setting up NCCL communicators and retrieving ncclUniqueIds from "
        "roots via TCPStore by key '0:1', but got error: wait timeout after 300000ms, keys: /default_pg/0//cuda//0:1": (
            Fault("store_wait_timeout", "a store key did not come within 300 s", entity="/default_pg/0//cuda//0:1")
        ),
        "RuntimeError: [7] is setting up NCCL communicator and retreiving ncclUniqueId from [0] via c10d key-value "
        "store "
        "by key '0', but store->get('0') got error: Timeout waiting for key: default_pg/0/0 after 600000 ms": (
            Fault("store_wait_timeout", "a store key did not come", entity="default_pg/0/0")
        ),
        "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] "
        "via c10d key-value store by key '0', but store->get('0') got error: Socket Timeout": (
            Fault("store_wait_timeout", "a store key did not come")
        ),
        "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /worker/ready": (
            Fault("store_wait_timeout", "a store key did not come within 600 s", entity="/worker/ready")
        ),
    },
    rejects=(
        "torch.distributed.DistStoreError: wait timeout after 900000ms, keys: /skyrl/skyrl//cuda//0",
        "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] "
        "via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer",
    ),
)
def store_wait_timeout(found: Any) -> Fault:
    """A rank waited for a key that the rank which should have set it never set: it died, hangs, or runs other code."""
    limit = f" within {int(found['limit']) // 1000} s" if found["limit"] else ""
    return Fault(
        "store_wait_timeout",
        f"a store key did not come{limit}",
        entity=(found["keys"] or found["key"] or "").rstrip(".,"),
    )


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("waiting for clients.", "The client socket has timed out after"),
    regex=_RAISED + r"(?:Timed out after \d+ seconds waiting for clients\. (?P<joined>\d+/\d+) clients joined"
    r"|The client socket has timed out after \d+m?s while trying to connect to \((?P<address>[^)]*))",
    samples={
        "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 7/8 clients joined.": (
            Fault("store_wait_timeout", "7/8 clients joined the store")
        ),
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to "
        "(10.1.0.4, 29500).": Fault("store_wait_timeout", "the store did not answer", entity="10.1.0.4, 29500"),
        "[E socket.cpp:922] [c10d] The client socket has timed out after 1800s while trying to connect to (10.1.0.4, "
        "44737).": Fault("store_wait_timeout", "the store did not answer", entity="10.1.0.4, 44737"),
    },
    rejects=("waiting for clients. 7/8 clients joined.", "The client socket has timed out"),
)
def store_not_reached(found: Any) -> Fault:
    """Ranks are missing at a store, or its owner does not answer: the absent process is elsewhere."""
    if found["joined"]:
        return Fault("store_wait_timeout", f"{found['joined']} clients joined the store")
    return Fault("store_wait_timeout", "the store did not answer", entity=found["address"])


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("has failed to listen on any local network address",),
    regex=_RAISED + r"The server socket has failed to listen on any local network address",
    samples={
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
        "port: "
        "29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use": (
            Fault("port_in_use", "the store's port is taken")
        ),
    },
    rejects=("The server socket on [::]:29500 is not yet listening, will retry.",),
)
def store_port_taken(found: Any) -> Fault:
    """The rendezvous store could not bind its port: another process (often a left-over rank) holds it."""
    return Fault("port_in_use", "the store's port is taken")


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=(
        '"should dump" flag on TCPStore',
        "sendBytes failed on SocketImpl",
        "recvValue failed on",
        "recvVector failed on",
    ),
    regex=r"(?:\[Rank \d+\] )?(?:\[c10d\] )?(?:Failed to check the \"should dump\" flag on TCPStore"
    r"|sendBytes failed on SocketImpl|recv(?:Value|Vector) failed on)",
    samples={
        "[rank0]:[W314 09:00:04.114313172 ProcessGroupNCCL.cpp:1793] [PG ID 1 PG GUID 1(mesh_fsdp) Rank 0] Failed to "
        'check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Broken '
        "pipe": Fault("peer_lost", "the store's owner is gone"),
        "[rank0]:[W314 09:00:04.115313167 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=60, "
        "addr=[node-11]:36214, remote=[node-12]:43145): Broken pipe": Fault("peer_lost", "the store's owner is gone"),
        "[rank0]:[W314 09:00:04.115313167 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=60, "
        "addr=[node-11]:36214, remote=[node-12]:43145): Failed to recv, got 0 bytes. Connection was likely closed.": (
            Fault("peer_lost", "the store's owner is gone")
        ),
        "[W314 09:00:04.115313167 TCPStore.cpp:131] [c10d] recvVector failed on SocketImpl(fd=60): Connection reset": (
            Fault("peer_lost", "the store's owner is gone")
        ),
    },
    rejects=("Exception raised from sendBytes at Utils.hpp:653 (most recent call first):",),
)
def store_owner_gone(found: Any) -> Fault:
    """A survivor's store connection broke because the process that held the store left; repeats every second."""
    return Fault("peer_lost", "the store's owner is gone")


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=("Connection reset by peer", "Connection closed by peer"),
    regex=_RAISED
    + r"(?:"
    + _KEY_WAIT
    + r"[^\n]{0,400}?got error: |\[[\w./]+:\d+\] )(?P<what>Connection (?:reset|closed) by peer)",
    samples={
        "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] "
        "via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer": (
            Fault("peer_lost", "Connection reset by peer")
        ),
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
        "[10.1.0.4]:23761": (Fault("peer_lost", "Connection closed by peer")),
    },
    rejects=("curl: (56) Recv failure: Connection reset by peer",),
)
def store_peer_lost(found: Any) -> Fault:
    """The other end of a store or gloo connection died while this rank was joining its group."""
    return Fault("peer_lost", found["what"])


PATTERNS = (
    weight_sync_bootstrap_timeout,
    store_wait_timeout,
    store_not_reached,
    store_port_taken,
    store_owner_gone,
    store_peer_lost,
)
