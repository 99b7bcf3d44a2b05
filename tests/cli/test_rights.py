"""Files that the caller may not read or write: that is of the caller, and no fault of the store."""

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


def test_a_partition_that_the_caller_may_not_write_says_who_may(shell: Shell, public: Store) -> None:
    """`repair` of a RocketMQ store said so by its lock; of a partition it was a bare "Permission denied"."""
    assert shell("sample", public.root.parent / "sample").status == 0
    partition = public.root.parent / "sample" / "orders-0"
    with ordinary_user():
        done = shell("repair", partition)
    assert done.status == 2
    said = f"{partition}: Permission denied; expected to run as the broker's user, who may write it\n"
    assert done.err.endswith(said)
