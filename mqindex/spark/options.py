"""Arguments of the data sources and functions: options, whose names must be known, and paths of files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any
from urllib.parse import unquote

from mqindex._native.numbers import int64
from mqindex.columns.columns import chosen_columns
from mqindex.columns.limits import INT_MAX
from mqindex.columns.time_text import time_of_text
from mqindex.errors import path_of
from mqindex.files.paths import absolute
from mqindex.files.places.place import STORAGES, Place, place_of
from mqindex.zones.cache import ZoneCache

STORAGE_OPTIONS, COLUMNS, CACHE = "storageOptions", "columns", "cache"
_PATHS = ("path", "paths")  # what `load()` gives
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


class SourceOptions:
    """The options of a `load()`, which Spark hands over as text, by names without case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._given

    def require(self, known: Sequence[str], source: str) -> None:
        """Refuse an option that `source` does not have: if it were ignored, the rows would be wrong."""
        names = {name.lower(): name for name in known}
        for name in self._given:
            if name not in names and name not in _PATHS:
                near = get_close_matches(name, names, n=1)
                meant = f"; did you mean {names[near[0]]}?" if near else ""
                raise ValueError(f"{name}: {source} has no such option: expected {', '.join(known)}{meant}")

    def refuse(self, names: Sequence[str], where: str) -> None:
        """Refuse these options, which the source has only for another kind of read."""
        for name in names:
            if name in self:
                raise ValueError(f"{name}: expected none in {where}, got {self.text(name)!r}")

    def paths(self) -> list[str]:
        """The paths of `load()`, absolute."""
        paths = json.loads(self._given["paths"]) if "paths" in self else [self._given.get("path", "")]
        if not paths or not all(paths):
            raise ValueError('path: expected a directory, as in .load("/data/store"), got none')
        return [absolute(given(path, "path", self._storage_options())) for path in paths]

    def _storage_options(self) -> dict[str, Any] | None:
        """Those of paths that are URLs; no word of them is in an error."""
        text = self.text(STORAGE_OPTIONS)
        if text is None:
            return None
        with suppress(ValueError):
            if isinstance(found := json.loads(text), dict):
                return found
        raise ValueError(f'{STORAGE_OPTIONS}: expected a JSON object, as {{"region": "eu-west-1"}}')

    def text(self, name: str) -> str | None:
        """An option as it is."""
        return self._given.get(name.lower())

    def texts(self, name: str) -> list[str] | None:
        """An option of one text, or where it begins with `[` of several: a JSON array."""
        text = self.text(name)
        if text is None or not text.startswith("["):
            return None if text is None else [text]
        with suppress(ValueError, RecursionError):
            found = json.loads(text)
            if isinstance(found, list) and all(isinstance(one, str) for one in found):
                return found
        raise ValueError(f'{name}: expected one text, or a JSON array of texts, as ["a", "b"], got {text!r:.80}')

    def integers(self, name: str) -> list[int] | None:
        """The same of whole numbers."""
        text = self.text(name)
        if text is None or not text.startswith("["):
            return None if text is None else [self.integer(name, None)]
        with suppress(ValueError, RecursionError):
            found = json.loads(text)
            if isinstance(found, list) and all(type(one) is int and 0 <= one <= INT_MAX for one in found):
                return found
        raise ValueError(f"{name}: expected a whole number, or a JSON array of some, as [0, 1], got {text!r:.80}")

    def columns(self, known: Collection[str]) -> list[str] | None:
        """The option of columns: names with commas between them."""
        text = self.text(COLUMNS)
        if text is None:
            return None
        return list(chosen_columns([name.strip() for name in text.split(",")], known))

    def time(self, name: str) -> int | None:
        """An option that is a time, in ms since the epoch."""
        text = self.text(name)
        try:
            return None if text is None else time_of_text(text.strip())
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def cache(self) -> ZoneCache:
        """Where zone maps are looked for: a directory, `none`, or the user's own."""
        text = self.text(CACHE)
        if text == "":
            raise ValueError(f"{CACHE}: expected a directory, or none, got {text!r}")
        return ZoneCache.of(False if text == "none" else text)

    def one_of(self, name: str, words: Sequence[str], default: Any) -> Any:
        """An option that is one of a few words."""
        text = self.text(name)
        if text is not None and text not in words:
            said = (" or " if len(words) == 2 else ", ").join(words)
            raise ValueError(f"{name}: expected {said}, got {text!r}")
        return default if text is None else text

    def integer(self, name: str, default: Any, least: int = 0) -> Any:
        """An option that is a whole number, of 64 bits and not less than `least`."""
        text = self.text(name)
        if text is None:
            return default
        if re.fullmatch(r"-?[0-9]+", text) is None:
            raise ValueError(f"{name}: expected an integer, got {text!r}")
        number = int64(name, int(text))
        if number < least:
            raise ValueError(f"{name}: expected {least} or more, got {number}")
        return number

    def boolean(self, name: str, default: bool = False) -> bool:
        """An option that is true or false."""
        text = (self.text(name) or str(default)).lower()
        if text not in ("true", "false"):
            raise ValueError(f"{name}: expected true or false, got {text!r}")
        return text == "true"


def given(path: str | os.PathLike[str], name: str = "path", storage_options: Mapping[str, Any] | None = None) -> str:
    """The path that was given, a `file:` URL too; another URL is a `Place`. `name`: the argument's.

    >>> given("file:///data/my%20store"), given("file:/data"), given("store")
    ('/data/my store', '/data', 'store')
    >>> given("s3://bucket/store/index").name
    'index'
    """
    text = path_of(name, path)
    scheme = _SCHEME.match(text)
    if isinstance(path, Place) or scheme is None:
        place: str = path if isinstance(path, Place) else text
    elif scheme[1].lower() in STORAGES and text.startswith("://", scheme.end(1)):
        place = place_of(text, storage_options)
    else:
        place = _of_file_url(text, scheme, name)
    if not place:
        raise ValueError(f"{name}: expected a path, got {text!r}")
    return place if isinstance(place, Place) else path_of(name, place)


def _of_file_url(text: str, scheme: re.Match[str], name: str) -> str:
    """The path in a URL."""
    place = re.sub(r"^//(localhost)?(?=/)", "", text[scheme.end() - 1 :])
    if scheme[1].lower() != "file" or place.startswith("//"):
        what = "a file:// URL with a host" if scheme[1].lower() == "file" else f"{scheme[1]}://"
        known = ", ".join(["file", *sorted(STORAGES)])
        raise ValueError(
            f"{name}: {what} is not read by this version: expected a path or a URL of {known}, got {text!r}"
        )
    return unquote(place)
