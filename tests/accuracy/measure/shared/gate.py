"""Processes that are started early and wait: their imports are done while another case still runs."""
import os
import signal
import subprocess
import tempfile
import time

import psutil

VARIABLE = "MEASURE_GATE"
TURN = "MEASURE_TURN"


def wait():
    """In the started process, after its imports and before it touches a GPU."""
    path = os.environ.get(VARIABLE)
    while path and not os.path.exists(path):
        time.sleep(0.02)


def wait_for_turn():
    """In the started process, once its warm-up is over: until its steps may be timed, with nothing beside them."""
    path = os.environ.get(TURN)
    if path:
        with open(path + ".waiting", "w", encoding="utf-8"):
            pass
    while path and not os.path.exists(path):
        time.sleep(0.02)


def wait_for_empty_gpus(environment=os.environ, seconds=30, idle_mib=2500):
    """Until nothing but the driver has memory on the visible GPUs: ended processes that pinned much memory take their
    time."""
    asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible:
        asked += ["-i", visible]
    end = time.time() + seconds
    while time.time() < end:
        used = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
        if max(map(int, used)) < idle_mib:
            return
        time.sleep(0.2)
    raise SystemExit("another process has memory on the GPUs")


class Gated:
    """A command that has been started and waits for open(); what it prints is kept in `log`."""

    def __init__(self, command, folder, env=None):
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        handle, self._path = tempfile.mkstemp()
        os.close(handle)
        os.remove(self._path)
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, cwd=folder,
                                        start_new_session=True, env={**(env or os.environ), VARIABLE: self._path})

    def open(self):
        with open(self._path, "w", encoding="utf-8"):
            pass

    def end(self):
        """The command and all it has started: launchers give their workers sessions of their own."""
        try:
            started = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            started = []
        for process in [self.process, *started]:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        psutil.wait_procs(started, 30)

    def words(self):
        self.log.seek(0)
        return self.log.read()

    def close(self):
        self.log.close()
        if os.path.exists(self._path):
            os.remove(self._path)
