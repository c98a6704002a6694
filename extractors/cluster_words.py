"""What Kubernetes and its queue say of pods, as lines: `kubectl describe`, events, Iris' reasons. A part of `host`.

The polls of the same matter are read in `kubernetes` and `iris`.
"""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Benign, Fault

_KEY = r"\s*(?:\"?(?:reason|message|status)\"?\s*[:=]\s*['\"]?)?"
_EVENT = r"\s*(?:(?:[\w.:-]+\s+){0,4}?(?:Warning|Normal)\s+\w+\s+(?:\S+\s+){0,12}?)?"
"""The columns of `kubectl get events` and of describe's event list before the message."""
_SHORT = {"memory": "host_oom"}


@pattern(
    "host",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("he node was low on resource: ", "he node had condition: [", "xceeds the total limit of containers"),
    regex=r"(?:" + _KEY + r"|" + _EVENT + r")(?:The node was low on resource: (?P<what>[\w-]+)"
    r"|The node had condition: \[(?P<condition>\w+)Pressure\]"
    r"|Pod ephemeral local storage usage e(?P<own>xceeds the total limit of containers))",
    samples={
        "The node was low on resource: ephemeral-storage. Threshold quantity: 100Gi, available: 70Gi.": (
            Fault("disk_full", "evicted: the node was low on ephemeral-storage")
        ),
        "  message: 'The node was low on resource: memory. Container task was using 900Gi'": (
            Fault("host_oom", "evicted: the node was low on memory")
        ),
        "5m  Warning  Evicted  pod/iris-bob-rl-0-77ab-0  The node was low on resource: ephemeral-storage.": (
            Fault("disk_full", "evicted: the node was low on ephemeral-storage")
        ),
        "message: The node had condition: [DiskPressure].": Fault("disk_full", "evicted: the node was low on disk"),
        "  message: Pod ephemeral local storage usage exceeds the total limit of containers 50Gi.": (
            Fault("disk_full", "evicted: the pod passed its ephemeral-storage limit")
        ),
    },
    rejects=("I think The node was low on resource: memory", "The node was low on fuel"),
)
def evicted(found: Any) -> Fault:
    """The kubelet evicted a pod for want of memory or disk: the cluster's own word for why its processes ended."""
    if found["own"]:
        return Fault("disk_full", "evicted: the pod passed its ephemeral-storage limit")
    what = (found["what"] or found["condition"]).lower()
    return Fault(_SHORT.get(what, "disk_full"), f"evicted: the node was low on {what}")


@pattern(
    "host",
    Nature.BENIGN,
    hints=(
        " allows to fit only ",
        "SchedulingGated",
        "ErrImagePull",
        "ImagePullBackOff",
        "ack-off pulling image",
        "ailed to pull image ",
    ),
    regex=r"(?:"
    + _KEY
    + r"|"
    + _EVENT
    + r")(?:[^\n{\"]{0,160}?topology ['\"\w./-]+ (?P<gate>allows to fit only) \d+ out of"
    r"|(?P<gated>SchedulingGated)\b|ErrImagePull\b|ImagePullBackOff\b|Back-off pulling image |Failed to pull image )",
    samples={
        "topology 'infiniband' allows to fit only 2 out of 8 pod(s)": Benign("queue-admission"),
        'couldn\'t assign flavors to pod set main: topology "default" allows to fit only 3 out of 8 pod(s)': (
            Benign("queue-admission")
        ),
        "reason: SchedulingGated": Benign("queue-admission"),
        "ErrImagePull: rpc error: code = Unknown desc = failed to copy: unexpected EOF": Benign("image-pull"),
        '  reason: "ImagePullBackOff"': Benign("image-pull"),
        '4m  Warning  Failed  pod/iris-bob-rl-0-77ab-0  Failed to pull image "org/rl:9": EOF': Benign("image-pull"),
        '  Normal  BackOff  4m (x3 over 5m)  kubelet  Back-off pulling image "org/rl:9"': Benign("image-pull"),
    },
    rejects=("the docs say that SchedulingGated pods wait", "His topology allows to fit only 2 out of 3 sofas"),
)
def waiting_for_a_place(found: Any) -> Benign:
    """A pod waits for its queue's admission, or for its image, which a torn download (EOF) repeats by itself."""
    return Benign("queue-admission" if found["gate"] or found["gated"] else "image-pull")


PATTERNS = (evicted, waiting_for_a_place)
