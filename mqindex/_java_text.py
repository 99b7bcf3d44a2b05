"""Text as Java reads it: that decides the name of a topic whose bytes are no UTF-8.

>>> bytes.fromhex("61 eda080 62 ff").decode(errors=JAVA)
'a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}'
"""

from __future__ import annotations

import codecs
from typing import Final

JAVA: Final = "mqindex.java"
"""As `errors` of a decoding it gives what Java's `new String(bytes, UTF_8)` does."""


def _replace(error: UnicodeError) -> tuple[str, int]:
    """One replacement for each malformed part; to Java, not to Python, a surrogate of three bytes is one part."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, stop = error.object, error.end
    if data[error.start] == 0xED:
        while stop < min(error.start + 3, len(data)) and data[stop] & 0xC0 == 0x80:
            stop += 1
    return "\N{REPLACEMENT CHARACTER}", stop


codecs.register_error(JAVA, _replace)
