"""Which words of a command change something: knowledge for `refusal.py`, each piece with commands that are refused for
it and look-alikes that are not (both as one would type them in a shell)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Changing:
    """Words that change something wherever they stand: as a program, a sub-command, a value or a piece of a flag.
    does says what they do."""

    does: str
    words: frozenset[str]
    samples: tuple[str, ...]
    lookalikes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tool:
    """A program of which only some uses look: verbs (its first one or two words that are no flags) and flags change
    something."""

    names: frozenset[str]
    verbs: frozenset[str]
    samples: tuple[str, ...]
    lookalikes: tuple[str, ...]
    flags: frozenset[str] = frozenset()


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


ANYWHERE = (
    Changing(
        "ends processes",
        _set("kill killall killall5 pkill skill tkill xkill sigkill sigterm terminate abort")
        | _set("halt shutdown poweroff reboot"),
        (
            "kill -9 4711",
            "/usr/bin/pkill -f worker",
            "kubectl exec pod-0 -- kill 1",
            "sh -c 'nvidia-smi; kill 4711'",
            "bash -lc \"'k'ill 4711\"",
            "sh -c 'echo $(kill 4711)'",
            "ssh node-1 'pkill -f ray'",
            "python -c 'import os; os.kill(4711, 9)'",
            "python -m ops.kill_job 42",
            "python tools/kill_job.py 42",
            "iris job kill /kim/rl-demo",
            "timeout -s KILL 20 nvidia-smi",
            "ps-or-kill --kill-children",
            "xargs kill",
        ),
        (
            "iris_ops.py --cluster killer-bee --once --json",
            "timeout --kill-after=5 20 nvidia-smi",
            "kubectl get events --field-selector reason=Killing",
            "sh -c 'dmesg -T | grep -i kill'",
            "sync_rl_logs.py /kim/skill-mix-3 --dest .",
        ),
    ),
    Changing(
        "ends, holds or restarts jobs",
        _set("scancel cancel stop restart requeue preempt suspend resubmit relaunch sbatch salloc sbcast strigger"),
        (
            "scancel 4242",
            "/opt/slurm/bin/scancel 4242",
            "scontrol requeue 4242",
            "ray stop --force",
            "ray job stop raysubmit_1",
            "kubectl rollout restart deployment/web",
            "systemctl restart ray",
            "iris_ops.py /kim/rl-demo --action=cancel",
            "sh -c 'squeue -h || scancel 4242'",
            "stop-job.sh 4242",
            "curl http://head:8265/api/jobs/raysubmit_1/stop",
        ),
        (
            "/opt/stop-watch/bin/poll --once",
            "sacct -P -j 4242 --state=CANCELLED",
            "squeue -h -t cancel",
            "iris_ops.py /kim/early-stopping-1 --once",
            "srun --no-requeue --jobid=4242 nvidia-smi",
        ),
    ),
    Changing(
        "removes what is there",
        _set("delete rm rmdir unlink shred truncate purge prune destroy evict erase wipe"),
        (
            "kubectl delete pod pod-0",
            "rm -rf trace_jobs",
            "aws s3 rm s3://bucket/run --recursive",
            "find . -name '*.log' -delete",
            "curl -X DELETE http://head:8265/api/jobs/raysubmit_1",
            "iris_ops.py /kim/rl-demo --force-delete",
            "docker run --rm image nvidia-smi",
            "sqlite3 jobs.db 'DELETE FROM jobs'",
        ),
        (
            "df -h /mnt/rm-archive",
            "iris_ops.py /kim/undeleted --once",
            "aws s3 ls --recursive s3://bucket/deleted-runs/",
        ),
    ),
    Changing(
        "changes the cluster",
        _set("apply patch scale drain undrain cordon uncordon taint rollback deploy undeploy reset"),
        (
            "kubectl apply -f job.yaml",
            "kubectl scale --replicas=0 deployment/web",
            "kubectl drain node-1",
            "kubectl patch job demo -p {}",
            "nvidia-smi --gpu-reset -i 0",
            "ray serve deploy app.yaml",
        ),
        (
            "gdb -p 4711 -batch -ex 'thread apply all bt'",
            "sinfo -h --states=drain -o '%n %T'",
            "kubectl get pods -l tier=scale-out",
        ),
    ),
)

FIRST = Changing(
    "changes what is there",
    _set("mv dd chmod chown mkfs eval update insert drop alter"),
    ("mv finelog.log old.log", "sh -c 'ls; mv a b'", "sqlite3 jobs.db 'UPDATE jobs SET state = 1'"),
    ("iris query 'select state from jobs where last_update > 1'", "kubectl get pod mv"),
)
"""Words that change something where a command begins."""

TOOLS = (
    Tool(
        _set("kubectl oc k"),
        _set("create edit replace label annotate autoscale expose set run debug attach proxy port-forward")
        | {"rollout undo", "rollout pause", "rollout resume"},
        ("kubectl -n rl create -f job.yaml", "sudo kubectl label pod pod-0 a=b", "kubectl rollout undo deployment/web"),
        (
            "kubectl get pods -o json",
            "kubectl -n run get pods -o wide",
            "kubectl -n rl exec pod-0 -c task -- nvidia-smi --query-gpu=index,utilization.gpu --format=csv",
            "kubectl rollout status deployment/web",
            "kubectl logs pod-0 --tail=100",
        ),
    ),
    Tool(
        _set("ray"),
        _set("start up down submit rsync-up rsync_up kill-random-node kill_random_node") | {"job submit", "serve run"},
        ("ray up cluster.yaml", "ray job submit -- python train.py", "ray kill-random-node"),
        ("ray job status raysubmit_1", "ray status", "ray list actors --format json", "ray job logs start"),
    ),
    Tool(
        _set("iris"),
        _set("run submit") | {"job run", "job submit", "cluster start", "cluster up", "cluster down"},
        ("iris job run -- python train.py", "iris --cluster lab cluster down"),
        ("iris job list --json", "iris job logs run", "iris --cluster killer-bee job summary /kim/rl-demo"),
    ),
    Tool(
        _set("scontrol"),
        _set("update hold uhold release resume create down reconfigure setdebug setdebugflags takeover top write"),
        ("scontrol update job=4242 timelimit=1", "scontrol hold 4242"),
        ("scontrol show job -o 4242", "scontrol ping"),
    ),
    Tool(
        _set("sacctmgr"),
        _set("add modify create load archive"),
        ("sacctmgr -i modify user kim set maxjobs=0",),
        ("sacctmgr show qos -P",),
    ),
    Tool(
        _set("nvidia-smi"),
        frozenset(),
        ("nvidia-smi -pm 1", "kubectl exec pod-0 -- nvidia-smi -i 0 -pl 300", "nvidia-smi mig -dci"),
        (
            "nvidia-smi",
            "nvidia-smi -q -d MEMORY",
            "nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader",
        ),
        _set("-r -pm --persistence-mode -pl --power-limit -lgc --lock-gpu-clocks -rgc -lmc --lock-memory-clocks -rmc")
        | _set("-ac --applications-clocks -rac -c --compute-mode -e --ecc-config -p -mig --multi-instance-gpu -gom")
        | _set("-cgi -cci -dgi -dci"),
    ),
    Tool(_set("dcgmi"), _set("diag config policy"), ("dcgmi diag -r 3",), ("dcgmi dmon -e 203 -c 1",)),
    Tool(
        _set("docker podman nerdctl crictl"),
        _set("run create start rmi pause unpause update rename commit load import push pull build runp stopp rmp"),
        ("docker pause web", "crictl stopp 1a2b"),
        ("docker ps -a", "docker exec web ps -eo pid,args", "crictl ps -o json"),
    ),
    Tool(
        _set("systemctl"),
        _set("start reload mask unmask enable disable isolate edit daemon-reload set-property"),
        ("systemctl disable ray",),
        ("systemctl status ray", "systemctl is-active ray"),
    ),
    Tool(
        _set("aws gsutil s5cmd"),
        _set("mv rb mb") | {"s3 mv", "s3 rb", "s3 mb"},
        ("aws s3 mv a s3://bucket/b",),
        ("aws s3 ls --recursive s3://bucket/run/trace_jobs/", "aws s3 sync s3://bucket/run .", "aws s3 ls mv"),
    ),
    Tool(
        _set("curl"),
        frozenset(),
        (
            "curl -XPUT http://head:8265/api/serve",
            "curl -d {} http://head:8265/api/jobs/",
            "curl --request POST http://h/x",
        ),
        ("curl -sf http://pod-0:9400/metrics", "curl -s http://head:8265/api/jobs/"),
        _set("-XPUT -XPOST -XDELETE -XPATCH -X --request -d --data --data-raw --data-binary --json -T --upload-file"),
    ),
)

READERS = _set("squeue sinfo sacct sstat sprio sshare grep egrep fgrep zgrep rg jq")
"""Programs that can only read, whose words are states and patterns to look for (`sinfo --states=drain`)."""

HARMLESS_FLAGS = _set("kill-after")
"""Flags that act on the probe alone: `timeout --kill-after`."""
HARMLESS_NAMES = _set("stop-watch stop_watch")
"""Names of programs that hold a word and mean another thing."""
HARMLESS_PHRASES = (("thread", "apply"), ("frame", "apply"))
"""gdb's way to look at all threads."""

VALUED_FLAGS = _set(
    "-n -s -c -l -o -p -w -j -M --namespace --context --kubeconfig --cluster --server --user --token --as"
) | _set("--selector --output --address --config --profile --region --endpoint-url --controller-url --request-timeout")
"""Flags whose next word is a value, so that it is no verb."""
