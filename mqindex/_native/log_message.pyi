from typing import TypeVar

from typing_extensions import Buffer

_M = TypeVar("_M")

def message_at(
    kind: type[_M], buf: Buffer, file_start: int, phy_offset: int, /
) -> _M | tuple[tuple[int, str, str | None, str, str] | None, int]: ...
def parse_properties(block: bytes, /) -> dict[str, str]: ...
