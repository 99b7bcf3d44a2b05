from collections.abc import Sequence
from typing import Any, TypeAlias

# (format, name, length, null_count, buffers, children)
Node: TypeAlias = tuple[str, str, int, int, Sequence[Any], Sequence[Node]]

def export_array(node: Node) -> tuple[object, object]: ...
def export_stream(node: Node) -> object: ...
