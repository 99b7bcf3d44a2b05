"""Who opened for writing may write; a forked child may not, whatever it inherited."""

from __future__ import annotations

import pytest

from mqindex._native.owner import Owner
from mqindex.errors import FileStateError
from tests.support.forked import in_child


def test_a_child_is_told_and_the_parent_goes_on() -> None:
    owner = Owner("/data/store")
    assert owner.require()
    said = in_child(owner.require)
    assert isinstance(said, FileStateError)
    assert str(said) == (
        "a forked child may not write what its parent opened for writing: /data/store;"
        " open it in the child, once the parent has closed it"
    )
    assert in_child(lambda: owner.here) is False
    assert owner.here
    assert owner.require()


def test_a_child_owns_what_it_opens_itself_and_its_own_child_does_not() -> None:
    def grandchild() -> tuple[bool, bool, type]:
        own = Owner()
        return own.here, in_child(lambda: own.here), type(in_child(own.require))

    assert in_child(grandchild) == (True, False, FileStateError)


def test_an_owner_without_a_path_says_the_same() -> None:
    with pytest.raises(FileStateError, match="open it in the child"):
        raise in_child(Owner().require)
