"""What several files need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def source() -> Path:
    """The repository."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program():
    """Runs the command that was installed with the module."""
    path = Path(sys.executable).parent / "shardplan"

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = [str(path), *map(str, arguments)]
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)

    return run


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Tests run where the sources cannot be imported by accident."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not os.listdir(tmp_path)
