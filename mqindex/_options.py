"""Options that several functions share: defined once, shown in the signature of each."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from mqindex.errors import require_switch

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def with_options_of(home: Callable[..., object]) -> Callable[[AnyFunction], AnyFunction]:
    """For a function that passes its `**options` to `home`: its signature shows each of them with its default.

    A misspelt name is refused before anything is done, by the name of the function that was called, and so is a switch,
    of which the default is True or False, that is given anything else.

    >>> def settings(*, colour="red", size=1): ...
    ...
    >>> @with_options_of(settings)
    ... def draw(what, *, deep=False, **options): ...
    ...
    >>> inspect.signature(draw)
    <Signature (what, *, deep=False, colour='red', size=1)>
    >>> draw("a line", color="blue")
    Traceback (most recent call last):
    TypeError: draw() got an unexpected keyword argument 'color'. Did you mean 'colour'?
    """
    shared = [one for one in inspect.signature(home).parameters.values() if one.kind is one.KEYWORD_ONLY]

    def decorate(function: AnyFunction) -> AnyFunction:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        names = {one.name for one in [*own, *shared]}
        switches = {one.name for one in [*own, *shared] if _is_switch(one)}

        @functools.wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            for name in named.keys() - names:
                import difflib  # only needed for a misspelt name

                near = difflib.get_close_matches(name, names, n=1)
                hint = f". Did you mean {near[0]!r}?" if near else ""
                raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}{hint}")
            for name in named.keys() & switches:
                require_switch(name, named[name])
            return function(*arguments, **named)

        checked.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorate


def _is_switch(one: inspect.Parameter) -> bool:
    return isinstance(one.default, bool) and one.annotation in ("bool", bool, one.empty)
