"""What a path is, from its content and its place, whichever broker's it is."""

from __future__ import annotations

from mqindex.files import disk


def kind_of(path: str) -> str | None:
    """The kind of what `path` names; None: none that we know. `FileNotFoundError` where there is nothing."""
    from mqindex.kafka import kinds as kafka  # here: who knows the kind does without

    is_directory = disk.is_directory(path)
    found = kafka.kind_of_directory(path) if is_directory else kafka.kind_of_name(path)
    if found is not None:
        return found
    from mqindex.rocketmq import kinds as rocketmq  # here: who asks for Kafka's does without

    found = rocketmq.kind_of_directory(path) if is_directory else rocketmq.kind_of_file(path)
    if found is not None or is_directory:
        return found
    from mqindex.rocketmq.index.geometry import is_index_file  # here: it takes numpy

    return "index-file" if is_index_file(path) else "segment" if kafka.begins_with_batch(path) else None
