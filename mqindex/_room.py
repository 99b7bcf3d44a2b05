"""A package whose public names load their modules with their first use.

A look-up in one file does not wait for the import of what verifies, repairs and serves whole stores.
"""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than the start of a command
if TYPE_CHECKING:
    from typing import Any


class Room(ModuleType):
    """The package; `_home` has the module of each public name, which may be that module itself."""

    _home: dict[str, str]
    _extra: str | None

    def __getattr__(self, name: str) -> Any:
        if name not in self._home:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        import importlib

        try:
            module = importlib.import_module(self._home[name])
        except ModuleNotFoundError as error:
            if self._extra is None or (error.name or "").startswith("mqindex"):
                raise
            needs = f"{self.__name__}.{name} needs {error.name}: pip install 'mqindex[{self._extra}]'"
            raise ImportError(needs) from error
        value = self._value(name, module)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """The import system binds each submodule to its name; a public function of that name keeps it."""
        if isinstance(value, ModuleType) and self._home.get(name) == value.__name__:
            value = self._value(name, value)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._home})

    def _value(self, name: str, module: ModuleType) -> Any:
        """A public name; without one in it, a module of that name is meant itself."""
        is_module = module.__name__ == f"{self.__name__}.{name}" and name not in vars(module)
        return module if is_module else getattr(module, name)


def open_room(package: str, home: dict[str, str], *, extra: str | None = None) -> None:
    """Make `package` a room. `extra`: what to install when a third-party package is missing."""
    room = sys.modules[package]
    vars(room).update(_home=home, _extra=extra)
    room.__class__ = Room
