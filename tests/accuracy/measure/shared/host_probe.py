"""What the host of a run takes for a Python call, a kernel's start and copies: data/probe/host.py, as `shardplan probe` runs it.

Records say it, so that what a host's speed did to a step can be told from the rest (environment.machine, and every
rank's own calls, taken while the other ranks take theirs).
"""
import importlib.util
import json
import os
import subprocess
import sys

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 4, "data", "probe", "host.py")
_VARIABLE = "MEASURE_MACHINE"


def machine():
    """The probe without PyTorch (shardplan.machine/1): records time blocks between their steps. Once for a
    program and all that it starts; None where it failed."""
    if _VARIABLE not in os.environ:
        done = subprocess.run([sys.executable, _PROGRAM, "--no-block"], capture_output=True, text=True, check=False)
        os.environ[_VARIABLE] = done.stdout if done.returncode == 0 else "null"
    return json.loads(os.environ[_VARIABLE])


def program():
    """data/probe/host.py as a module."""
    spec = importlib.util.spec_from_file_location("host_of_machine", _PROGRAM)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def calls():
    """The Python calls alone, in this process: well under a second."""
    return program().calls()
