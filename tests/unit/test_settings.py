"""Every row of the table of settings: what a broker takes of a text in its broker.conf, and what it ignores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.settings import SETTINGS, Setting

EACH = list(SETTINGS.values())
OTHER = {"flushDiskType": ("SYNC_FLUSH", "SYNC_FLUSH"), "messageDelayLevel": ("1s 2m", (1000, 120_000))}


def another(setting: Setting[Any]) -> tuple[str, Any]:
    """A text that is not the default, and its value."""
    if isinstance(setting.default, bool):
        return str(not setting.default), not setting.default
    if isinstance(setting.default, int):
        return str(setting.default // 2), setting.default // 2
    return OTHER.get(setting.name, ("/another", "/another"))


@pytest.mark.parametrize("setting", EACH, ids=lambda one: one.name)
def test_a_setting_is_given_known_or_the_default(setting: Setting[Any], tmp_path: Path) -> None:
    text, value = another(setting)
    conf, other = tmp_path / "broker.conf", tmp_path / "other.conf"
    conf.write_text(f"brokerName=a\n{setting.name}={text}\n")
    other.write_text("brokerName=a\n")
    whole, part = store_options("/s", config=conf, broker_version="5.5.1"), store_options("/s")
    default = setting.parsed(setting.default)
    assert (whole.given(setting), whole.known(setting), whole.value(setting)) == (value, value, value)
    assert (part.given(setting), part.known(setting), part.value(setting)) == (None, None, default)
    assert store_options("/s", config=other).known(setting) == default
    assert whole.reported(setting).source == str(conf)
    assert store_options("/s", config={setting.name: text}, broker_version="5.5.1").value(setting) == value


@pytest.mark.parametrize("setting", [one for one in EACH if not isinstance(one.default, str)], ids=lambda one: one.name)
def test_what_is_no_value_is_ignored_in_a_file_and_refused_in_a_mapping(setting: Setting[Any], tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(f"brokerName=a\n{setting.name}=4x\n")
    taken = False if isinstance(setting.default, bool) else setting.default
    with pytest.warns(UserWarning, match=f"^{setting.name}: "):
        assert store_options("/s", config=conf, broker_version="5.5.1").value(setting) == taken
    with pytest.raises(ValueError, match=f"^{setting.name}: expected "):
        store_options("/s", config={setting.name: "4x"})


@pytest.mark.parametrize("setting", EACH, ids=lambda one: one.name)
def test_a_misspelt_name_is_refused(setting: Setting[Any]) -> None:
    with pytest.raises(ValueError, match=f"expected {setting.name}; no broker has"):
        store_options("/s", config={f"{setting.name}_": "1"})


@pytest.mark.parametrize("setting", EACH, ids=lambda one: one.name)
def test_a_row_says_what_it_decides(setting: Setting[Any]) -> None:
    assert setting.decides
    assert bool(setting.unit) == (type(setting.default) is int and setting.name != "listenPort")
    assert setting.least is None or setting.least >= 0
