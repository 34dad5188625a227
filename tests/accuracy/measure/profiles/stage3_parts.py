"""Seconds that DeepSpeed's stage 3 takes of the host in one step of a real run, by part, without what it calls of the others.

Each part is a function of DeepSpeed's that is timed from outside; two readings of the clock a call are all that it costs.
"""
import time

PARTS = {"fetch_sub_module": "coordinator", "release_sub_module": "coordinator",
         "_PartitionedParameterCoordinator__all_gather_params_": "coordinator",
         "_DeepSpeedZeroOptimizer_Stage3__add_grad_to_ipg_bucket": "optimizer",
         "_DeepSpeedZeroOptimizer_Stage3__reduce_and_partition_ipg_grads": "optimizer",
         "reduce_ready_partitions_and_remove_grads": "optimizer",
         "independent_gradient_partition_epilogue": "optimizer",
         "_overflow_check_and_loss_scale_update": "optimizer", "step": "optimizer"}


def _owners():
    from deepspeed.runtime.zero.partitioned_param_coordinator import PartitionedParameterCoordinator
    from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3

    return {"coordinator": PartitionedParameterCoordinator, "optimizer": DeepSpeedZeroOptimizer_Stage3}


class Parts:
    """Watches from when it is made until `stop`; `taken` has calls and seconds by part."""

    def __init__(self):
        self.taken, self._open, self._inner = {}, [], []
        owners = _owners()
        for part, owner in PARTS.items():
            if hasattr(owners[owner], part):
                self._watch(owners[owner], part)

    def _watch(self, owner, part):
        inner = getattr(owner, part)
        self._inner.append((owner, part, inner))

        def timed(*given, **named):
            self._open.append(0.0)
            begin = time.perf_counter()
            try:
                return inner(*given, **named)
            finally:
                whole = time.perf_counter() - begin
                alone = whole - self._open.pop()
                if self._open:
                    self._open[-1] += whole
                calls, seconds = self.taken.get(part, (0, 0.0))
                self.taken[part] = calls + 1, seconds + alone

        setattr(owner, part, timed)

    def stop(self):
        for owner, part, inner in self._inner:
            setattr(owner, part, inner)
        return {part: [calls, round(seconds, 6)] for part, (calls, seconds) in self.taken.items()}
