from typing import Generic, TypeVar, final

from typing_extensions import Buffer

_M = TypeVar("_M")

@final
class MessageMaker(Generic[_M]):
    def __new__(cls, kind: type[_M], /) -> MessageMaker[_M]: ...
    def message_at(
        self, buf: Buffer, file_start: int, phy_offset: int, /
    ) -> _M | tuple[tuple[int, str, str | None, str, str] | None, int]: ...

def parse_properties(block: bytes, /) -> dict[str, str]: ...
