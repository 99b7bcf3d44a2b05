"""A cluster whose machines share no file: what each of them sees."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from tests.support.spark_cluster import ROOT, WORKERS, IsolatedCluster, require_apart


def write_own(directory: Path) -> None:
    (directory / f"of-{socket.gethostname()}").touch()


def names_of_ours(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("of-*"))


def driver_names(_: object, directory: Path) -> list[str]:
    return names_of_ours(directory)


def what_runs() -> tuple[str, str]:
    import mqindex

    return sys.executable, str(Path(mqindex.__file__).parents[1])


def test_each_machine_has_files_of_its_own(isolated_cluster: IsolatedCluster) -> None:
    data = isolated_cluster.data
    (data / "of-driver").touch()
    isolated_cluster.on_each(write_own, data)
    assert isolated_cluster.run(driver_names, data) == names_of_ours(data) == ["of-driver"]
    assert isolated_cluster.on_each(names_of_ours, data) == {name: [f"of-{name}"] for name in WORKERS}
    for name in WORKERS:
        assert names_of_ours(isolated_cluster.seen_by(name, data)) == [f"of-{name}"]


def test_workers_run_this_python_and_this_package(isolated_cluster: IsolatedCluster) -> None:
    assert isolated_cluster.on_each(what_runs) == dict.fromkeys(WORKERS, (sys.executable, str(ROOT)))


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_system_that_lets_nobody_mount_fails_in_ci_alone(
    ci: str, outcome: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "unshare"
    refusing.write_text("#!/bin/sh\necho unshare: not permitted >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("CI", ci)
    for path in (tmp_path, tmp_path / "none"):
        monkeypatch.setenv("PATH", f"{path}{os.pathsep}/bin" if path == tmp_path else str(path))
        with pytest.raises(outcome, match=r"no process may have files of its own here: .*(not permitted|unshare)"):
            require_apart(tmp_path)
