from typing import final

__pyx_capi__: dict[str, object]  # what other kernels cimport

@final
class Owner:
    path: str | None
    def __new__(cls, path: str | None = None) -> Owner: ...
    @property
    def here(self) -> bool: ...
    def require(self) -> bool: ...
