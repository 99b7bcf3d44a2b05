"""Small files of a store that the caller may not read: that is of the caller, and no fault of the store."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shell, Store, ordinary_user


@pytest.mark.parametrize("name", ["checkpoint", "config/consumerFilter.json"])
def test_a_file_that_the_caller_may_not_read_is_no_finding(shell: Shell, public: Store, name: str) -> None:
    """Its hint was to remove a good checkpoint, or that no broker starts with a good file of `config/`."""
    store = public.root
    file = store / name
    file.parent.mkdir(exist_ok=True)
    if not file.exists():
        file.write_text("{}")
    file.chmod(0)
    with ordinary_user():
        done = shell("verify", store)
    assert (done.status, done.out) == (2, "")
    assert done.err.endswith(f"{file}: Permission denied\n")
