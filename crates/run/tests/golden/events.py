"""Makes events.tfevents by TensorBoard's own messages and record writer (tensorboard 2.21.0).

    python events.py events.tfevents
"""

import sys

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

EVENTS = [
    Event(wall_time=1700000000.25, file_version="brain.Event:2"),
    Event(
        wall_time=1700000001.5,
        step=1,
        summary=Summary(
            value=[
                Summary.Value(tag="train/loss", simple_value=2.25),
                Summary.Value(tag="train/learning_rate", simple_value=0.002),
            ]
        ),
    ),
    Event(
        wall_time=1700000002.0,
        step=0,
        summary=Summary(value=[Summary.Value(tag="validation/nll", simple_value=0.0)]),
    ),
    Event(
        wall_time=0.0,
        step=5_000_000_000,
        summary=Summary(
            value=[
                Summary.Value(tag="τ" * 100, simple_value=float("nan")),
                Summary.Value(tag="x", simple_value=float("-inf")),
            ]
        ),
    ),
]

with open(sys.argv[1], "wb") as file:
    writer = RecordWriter(file)
    for event in EVENTS:
        writer.write(event.SerializeToString())
    writer.flush()
