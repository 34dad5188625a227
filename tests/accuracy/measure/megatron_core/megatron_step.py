"""A training step of Megatron Core on this rank, whatever the world it is in."""
from functools import partial

import torch

from phases import PhaseRecorder, clean


def initialize(parallel):
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    chunks = parallel.get("virtual_pipeline", 1)
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=parallel.get("tensor", 1), pipeline_model_parallel_size=parallel.get("pipeline", 1),
        virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None,
        context_parallel_size=parallel.get("context", 1), expert_model_parallel_size=parallel.get("expert", 1),
        expert_tensor_parallel_size=parallel.get("expert_tensor"), create_gloo_process_groups=False)
    model_parallel_cuda_manual_seed(1)


class Step:
    """One optimizer step: the schedule's forward and backward passes, the optimizer, and the phases they fill."""

    def __init__(self, job, config, model, optimizer):
        from megatron.core.pipeline_parallel import get_forward_backward_func

        work = job["workload"]
        self.schedule = get_forward_backward_func()
        self.config, self.model, self.optimizer = config, model, optimizer
        self.micro_batch, self.length = work["micro_batch"], work["sequence_length"]
        self.micro_batches = work["gradient_accumulation"]
        self.vocabulary = job["model"]["vocab_size"]
        self.own_length = self.length // job.get("parallel", {}).get("context", 1)
        self.recorder = PhaseRecorder()

    def parameters(self):
        return sum(p.numel() for chunk in self.model for p in chunk.parameters())

    def batches(self):
        while True:
            tokens = torch.randint(0, self.vocabulary, (self.micro_batch, self.own_length), device="cuda")
            positions = torch.arange(self.own_length, device="cuda").expand(self.micro_batch, -1)
            yield tokens, positions, torch.ones(self.micro_batch, self.own_length, device="cuda")

    def forward(self, batches, model):
        self.recorder.end("backward")
        tokens, positions, mask = next(batches)
        output = model(tokens, positions, None, labels=tokens)
        self.recorder.end("forward")
        return output, partial(self.loss, mask)

    @staticmethod
    def loss(mask, output):
        losses = output.float().view(-1)
        mask = mask.view(-1)
        loss = torch.sum(losses * mask) / mask.sum()
        return loss, {"lm loss": loss.detach()}

    def __call__(self):
        self.recorder.begin()
        for chunk in self.model:
            chunk.zero_grad_buffer()
        self.optimizer.zero_grad()
        iterators = [self.batches() for _ in self.model]
        losses = self.schedule(forward_step_func=self.forward, data_iterator=iterators if len(iterators) > 1 else iterators[0],
                               model=self.model if len(self.model) > 1 else self.model[0], num_microbatches=self.micro_batches,
                               seq_length=self.length, micro_batch_size=self.micro_batch, decoder_seq_length=self.length,
                               forward_only=False)
        self.recorder.end("backward")
        self.optimizer.step()
        self.recorder.end("step")
        return losses[-1]["lm loss"] if losses else float("nan")  # the last stage alone has one


def make_step(job):
    """(the step, bytes that are allocated once model, gradients and optimizer are built)"""
    from megatron_model import build

    initialize(job.get("parallel", {}))
    clean()
    config, model, optimizer = build(job)
    clean()
    return Step(job, config, model, optimizer), torch.cuda.memory_allocated()


def prepare_libraries():
    """Once, before anything of Megatron Core is imported. Their versions."""
    from megatron_model import provide_gradient_kernel

    provide_gradient_kernel()
    import megatron.core
    import transformer_engine

    return {"megatron_core": megatron.core.__version__, "transformer_engine": transformer_engine.__version__}
