"""Options of a storage that it does not know, or that are no values of theirs: a `ValueError` that shows no value."""

from __future__ import annotations

from typing import Any

import pytest

from mqindex.files.places.place import Place, place_of
from mqindex.rocketmq import IndexService

pytest.importorskip("obstore")

SECRET = "guessed"
WRONG = {
    "s3": [
        {"sekret": SECRET},
        {"secret_access_key": SECRET.encode()},
        {"virtual_hosted_style_request": SECRET},
        {"client_options": {"timeout": SECRET}},
        {"client_options": {"nothing": SECRET}},
        {"retry_config": {"max_retries": SECRET}},
    ],
    "gs": [{"service_account_key": SECRET}],
    "az": [{"account_key": SECRET}],
}


@pytest.mark.parametrize(("scheme", "options"), [(scheme, one) for scheme, some in WRONG.items() for one in some])
def test_wrong_options_are_one_sentence_without_their_values(scheme: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"^storage_options of {scheme}://bucket: \S") as refused:
        IndexService.open(f"{scheme}://bucket/index", storage_options=options)
    assert SECRET not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__suppress_context__


@pytest.mark.parametrize("own", ["unsigned_payload", "AWS_DISABLE_BULK_DELETE", "aws_unsigned_payload"])
def test_an_option_wins_over_what_is_usual_here(own: str) -> None:
    assert _config({own: "false"})[own.lower().removeprefix("aws_")] == "false"


def test_uploads_are_signed_with_their_bytes_where_nothing_else_guards_them() -> None:
    assert _config({})["unsigned_payload"] == "true"
    for plain in ({"allow_http": True}, {"client_options": {"allow_http": True}}):
        assert _config(plain)["unsigned_payload"] == "false"


def _config(options: dict[str, Any]) -> dict[str, Any]:
    place = place_of("s3://bucket/index", options)
    assert isinstance(place, Place)
    return dict(place.storage.client().config)  # type: ignore[attr-defined]
