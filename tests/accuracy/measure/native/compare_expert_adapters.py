"""Trains adapters of experts with peft and with shardplan-validate, on the CPU in fp32, from the same weights on the same
text: how far the two series of losses are from each other, and whether peft makes the next loss of what we saved.

    python native/compare_expert_adapters.py shardplan-validate
"""
import argparse
import json
import os
import subprocess
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

ROWS, TOKENS, STEPS, SAVED = 2, 16, 30, 10
RANK, ALPHA, BALANCE = 4, 8, 0.02
TARGETS = ["q_proj", "o_proj"]
PARAMETERS = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]
SHARED = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256,
          "max_position_embeddings": 64, "initializer_range": 0.1}
MODELS = [
    {**SHARED, "model_type": "mixtral", "intermediate_size": 48, "num_local_experts": 4, "num_experts_per_tok": 2,
     "output_router_logits": True, "router_aux_loss_coef": BALANCE},
    {**SHARED, "model_type": "qwen3_moe", "intermediate_size": 96, "moe_intermediate_size": 32, "head_dim": 16,
     "num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": True},
]


def text():
    return [(i * i * 7 + i * 13) % 251 for i in range(ROWS * TOKENS + 1)]


def job_of(model, folder):
    return {
        "model": model, "cluster": "1xA100-40GB", "framework": {"name": "native", "zero_stage": 0, "device": "host"},
        "precision": "fp32",
        "workload": {"kind": "train", "method": "lora", "micro_batch": ROWS, "sequence_length": TOKENS,
                     "lora": {"rank": RANK, "targets": TARGETS, "target_parameters": PARAMETERS}},
        "optimizer": {"name": "adamw", "lr": 3e-3, "weight_decay": 0.01, "betas": [0.9, 0.95], "eps": 1e-8},
        "gradient_clipping": 1.0,
        "run": {"steps": STEPS, "warmup": 1, "data": f"{folder}/text", "weights": f"{folder}/weights",
                "lora_alpha": ALPHA},
    }


def adapted(model, folder):
    """The network with random adapters; `folder` gets the base, and the base beside the adapters."""
    base = AutoModelForCausalLM.from_config(AutoConfig.for_model(**model), attn_implementation="eager").float()
    base.save_pretrained(f"{folder}/base")
    network = get_peft_model(base, LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=TARGETS, task_type="CAUSAL_LM",
                                              target_parameters=PARAMETERS))
    for name, parameter in network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    network.save_pretrained(f"{folder}/weights")
    save_file(load_file(f"{folder}/base/model.safetensors"), f"{folder}/weights/model.safetensors")
    return network


def loss_of(network, model):
    tokens = torch.tensor(text())
    balanced = model.get("output_router_logits", False)
    said = network(input_ids=tokens[:-1].view(ROWS, TOKENS), output_router_logits=balanced)
    loss = torch.nn.functional.cross_entropy(said.logits.view(-1, model["vocab_size"]).float(), tokens[1:])
    return loss + BALANCE * said.aux_loss if balanced else loss


def losses_of_peft(network, model):
    trained = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=3e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01)
    losses = []
    for _ in range(STEPS):
        loss = loss_of(network, model)
        losses.append(loss.item())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return losses


def losses_of_ours(program, model, folder):
    with open(f"{folder}/text", "wb") as file:
        file.write(bytes(text()))
    with open(f"{folder}/job.json", "w", encoding="utf-8") as file:
        json.dump(job_of(model, folder), file)
    done = subprocess.run([program, f"{folder}/job.json", "--format", "json", "--save", f"{folder}/saved", "--save-every",
                           str(SAVED), "--save-form", "whole"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return [step["loss"] for step in json.loads(done.stdout)["record"]["steps"]]


def compare(program, model):
    with tempfile.TemporaryDirectory() as folder:
        network = adapted(model, folder)
        ours = losses_of_ours(program, model, folder)
        theirs = losses_of_peft(network, model)
        base = AutoModelForCausalLM.from_pretrained(f"{folder}/base", attn_implementation="eager", dtype=torch.float32)
        saved = PeftModel.from_pretrained(base, os.path.join(folder, "saved", f"step-{SAVED}", "weights"))
        with torch.no_grad():
            after = loss_of(saved, model).item()
    apart = max(abs(a / b - 1) for a, b in zip(ours, theirs, strict=True))
    print(f"{model['model_type']}: {STEPS} losses from {theirs[0]:.4f} to {theirs[-1]:.4f}, at most {apart:.1e} apart; "
          f"peft's loss of what was saved is {abs(after / ours[SAVED] - 1):.1e} from our next")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="shardplan-validate")
    options = parser.parse_args()
    torch.manual_seed(1)
    for described in MODELS:
        compare(options.program, described)
