"""The pages of findings and of settings say what their tables say."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.support import findings_document, settings_document


@pytest.mark.parametrize("page", [findings_document, settings_document], ids=["findings", "settings"])
@pytest.mark.skipif(
    not findings_document.PATH.parent.exists(), reason="an installed package is tested without its documents"
)
def test_a_page_is_its_table(page: ModuleType) -> None:
    assert page.PATH.read_text(encoding="utf-8") == page.document(), f"run: python -m {page.__name__}"
