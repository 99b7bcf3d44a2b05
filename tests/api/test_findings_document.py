"""The page of findings says what the catalogues say."""

from __future__ import annotations

import pytest

from tests.support.findings_document import PATH, document


@pytest.mark.skipif(not PATH.parent.exists(), reason="an installed package is tested without its documents")
def test_the_page_of_findings_is_the_catalogues() -> None:
    assert PATH.read_text(encoding="utf-8") == document(), "run: python -m tests.support.findings_document"
