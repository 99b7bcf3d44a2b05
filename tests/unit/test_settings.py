"""Every row of the table of settings: what a broker takes of a text in its broker.conf, and what it ignores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from mqindex._settings import Setting
from mqindex.cli.commands.verify import command
from mqindex.kafka.options import partition_options
from mqindex.kafka.settings import SETTINGS as OF_TOPICS
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.settings import SETTINGS

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
    conf.write_text(f"namesrvAddr=a\n{setting.name}={text}\n")
    other.write_text("namesrvAddr=a\n")
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


OPTIONS = {option.name: option for option in command.params}
OF_OPTIONS = [one for one in (*EACH, *OF_TOPICS.values()) if one.argument]


@pytest.mark.parametrize("setting", OF_OPTIONS, ids=lambda one: one.name)
def test_an_option_of_the_shell_is_its_row(setting: Setting[Any]) -> None:
    """`--max-index-size 5` was taken by the shell and refused by the library; no help said what a setting decides."""
    option, context = OPTIONS[setting.argument], click.Context(command)
    record = option.get_help_record(context)
    assert record is not None
    broker = "Kafka" if setting.name in OF_TOPICS else "RocketMQ"
    unit = f", in {setting.unit}" if setting.unit else ""
    assert record[1].startswith(f"{broker}'s {setting.name}{unit}: {setting.decides}")
    assert f"{setting.default or setting.shown}]" in record[1]
    if setting.least is not None:
        assert record[1].endswith(f"[x>={setting.least}]")
        assert option.type_cast_value(context, str(setting.least)) == setting.least
        with pytest.raises(click.BadParameter, match=f"is not in the range x>={setting.least}"):
            option.type_cast_value(context, str(setting.least - 1))


@pytest.mark.parametrize("setting", OF_TOPICS.values(), ids=lambda one: one.name)
def test_a_topic_s_setting_is_the_default_or_as_given(setting: Setting[Any]) -> None:
    taken = partition_options(**{setting.argument: setting.least})
    assert (getattr(partition_options(), setting.argument), getattr(taken, setting.argument)) == (
        setting.default, setting.least,
    )  # fmt: skip
    with pytest.raises(ValueError, match=f"^{setting.argument}: expected a whole number from {setting.least} to "):
        partition_options(**{setting.argument: setting.least - 1})
