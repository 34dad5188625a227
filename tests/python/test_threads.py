"""Questions are asked while Python goes on."""

import os
import signal
import threading
import time

import shardplan


def test_other_threads_run_while_a_search_does():
    done = threading.Event()
    ticks = []

    def search():
        shardplan.search(model="llama-2-7b", cluster="2x8xA100-40GB", threads=1)
        done.set()

    thread = threading.Thread(target=search)
    thread.start()
    while not done.is_set():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    thread.join()
    longest = max(after - before for before, after in zip(ticks, ticks[1:]))
    took = ticks[-1] - ticks[0]
    assert longest < took / 2, f"Python stood still for {longest:.3f} s of {took:.3f} s"


def test_answers_do_not_mix_between_threads():
    """Dictionaries under the same name at the same time."""
    answers = {}

    def ask(batch):
        job = {"model": "gpt2", "cluster": "1xA100-40GB", "workload": {"micro_batch": batch}}
        answers[batch] = shardplan.estimate(job).peak_bytes

    batches = range(1, 9)
    threads = [threading.Thread(target=ask, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(answers)
    for batch in batches:
        ask(batch)
    assert together == answers
    assert len(set(answers.values())) == len(batches)


def test_an_interrupt_ends_a_search_with_the_best_so_far():
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    found = shardplan.search(model="llama-2-70b", cluster="64x8xH100", threads=1, global_batch=4096)
    timer.join()
    assert found.interrupted
    assert signal.getsignal(signal.SIGINT) is before
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    except KeyboardInterrupt:
        return
    raise AssertionError("Python's own handler was lost")
