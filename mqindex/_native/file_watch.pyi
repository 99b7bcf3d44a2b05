from typing import Self, final

@final
class FileWatch:
    def __new__(cls, fd: int) -> Self: ...
