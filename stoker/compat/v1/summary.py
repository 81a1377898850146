"""Public names of tf.summary."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.formats.protos import Event as Event
from stoker._src.formats.protos import SessionLog as SessionLog
from stoker._src.formats.protos import Summary as Summary
from stoker._src.formats.protos import SummaryDescription as SummaryDescription
from stoker._src.formats.protos import TaggedRunMetadata as TaggedRunMetadata
