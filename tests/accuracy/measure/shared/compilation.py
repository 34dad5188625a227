"""torch.compile as a job asks for it: the model in one piece, or block by block."""
import torch

BLOCKS = ("model.layers", "transformer.h", "gpt_neox.layers", "model.decoder.layers")


def blocks_of(model):
    for path in BLOCKS:
        try:
            return model.get_submodule(path)
        except AttributeError:
            continue
    raise ValueError(f"no list of blocks found in {type(model).__name__}")


def compile_blocks(model, **how):
    """In place, as torchtitan does it (models/llama3/parallelize.py): what is around the blocks stays eager."""
    blocks = blocks_of(model)
    for index, block in enumerate(blocks):
        blocks[index] = torch.compile(block, **how)


def compile_model(model, job, **how):
    """The model to call, where the job wants it compiled. Dynamo forgets what it compiled before: of one function it
    keeps eight graphs, and leaves the ninth model eager."""
    said = job.get("compile", False)
    if not said:
        return model
    torch._dynamo.reset()
    said = said if isinstance(said, dict) else {}
    if "mode" in said:
        how["mode"] = said["mode"]
    if said.get("scope") != "block":
        return torch.compile(model, **how)
    compile_blocks(model, **how)
    return model
