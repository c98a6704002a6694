"""wedgewatch with short epochs: what it keeps of its state is a fraction of a second old, so that a drill of some
seconds goes on from what the engine really kept. Run as `python -m tests.kafka.short_epochs watch ...`."""

from datetime import timedelta

from dataflow import flow
from dataflow.cli import main

EPOCH = timedelta(seconds=0.3)

if __name__ == "__main__":
    flow.EPOCH = EPOCH
    main()
