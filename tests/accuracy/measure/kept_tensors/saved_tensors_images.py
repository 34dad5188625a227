"""saved_tensors.py for networks that read images: writes tests/golden/saved_tensors_images.json. Each is run with all
of it training, with its tower frozen, and with tower and projector frozen.

    python3 tests/accuracy/measure/kept_tensors/saved_tensors_images.py
"""

import torch
import transformers

from autograd_storages import arguments, print_cases, saved_storages, write_golden

RUNS = [(2, 64, torch.float32), (2, 64, torch.bfloat16), (1, 96, torch.bfloat16)]
FROZEN = {"nothing": (), "tower": ("tower",), "tower_and_projector": ("tower", "projector")}

TEXT = {
    "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 256, "head_dim": 32,
    "pad_token_id": 0,
}
WITHOUT_HEAD_DIM = {k: v for k, v in TEXT.items() if k != "head_dim"}
TOWER = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4,
    "image_size": 56, "patch_size": 14,
}
QWEN_TOWER = {"depth": 3, "num_heads": 8, "patch_size": 14, "temporal_patch_size": 2, "spatial_merge_size": 2}
IMAGE = 511  # the token that stands for a row of an image
QWEN = {"image_token_id": IMAGE, "video_token_id": 510, "vision_start_token_id": 509, "vision_end_token_id": 508}
CASES = {
    "llava": {"model_type": "llava", "image_token_index": IMAGE, "vision_feature_layer": -2,
              "vision_feature_select_strategy": "default",
              "text_config": {"model_type": "llama", **TEXT},
              "vision_config": {"model_type": "clip_vision_model", **TOWER}},
    "llava-siglip": {"model_type": "llava", "image_token_index": IMAGE, "vision_feature_layer": -1,
                     "vision_feature_select_strategy": "full",
                     "text_config": {"model_type": "qwen2", **WITHOUT_HEAD_DIM},
                     "vision_config": {"model_type": "siglip_vision_model", **TOWER,
                                       "vision_use_head": False}},
    "gemma3": {"model_type": "gemma3", "image_token_index": IMAGE, "mm_tokens_per_image": 4,
               "text_config": {"model_type": "gemma3_text", **TEXT, "sliding_window": 1024},
               "vision_config": {"model_type": "siglip_vision_model", **TOWER, "vision_use_head": False}},
    "paligemma": {"model_type": "paligemma", "image_token_index": IMAGE, "projection_dim": 128,
                  "text_config": {"model_type": "gemma", **TEXT},
                  "vision_config": {"model_type": "siglip_vision_model", **TOWER, "vision_use_head": False}},
    "qwen2_vl": {"model_type": "qwen2_vl", **QWEN,
                 "text_config": {"model_type": "qwen2_vl_text", **WITHOUT_HEAD_DIM,
                                 "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                                     "mrope_section": [4, 6, 6]}},
                 "vision_config": {**QWEN_TOWER, "embed_dim": 64, "hidden_size": 128, "mlp_ratio": 2}},
    "qwen2_5_vl": {"model_type": "qwen2_5_vl", **QWEN,
                   "text_config": {"model_type": "qwen2_5_vl_text", **WITHOUT_HEAD_DIM,
                                   "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                                       "mrope_section": [4, 6, 6]}},
                   "vision_config": {**QWEN_TOWER, "hidden_size": 64, "intermediate_size": 128,
                                     "out_hidden_size": 128, "window_size": 56,
                                     "fullatt_block_indexes": [2]}},
    "qwen3_vl": {"model_type": "qwen3_vl", **QWEN,
                 "text_config": {"model_type": "qwen3_vl_text", **TEXT,
                                 "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                                     "mrope_section": [4, 6, 6]}},
                 "vision_config": {**QWEN_TOWER, "hidden_size": 64, "intermediate_size": 128,
                                   "out_hidden_size": 128, "deepstack_visual_indexes": [0, 1],
                                   "num_position_embeddings": 64}},
}
CASES["llava_next"] = {**CASES["llava"], "model_type": "llava_next", "image_grid_pinpoints": [[56, 56]],
                       "vision_config": {**CASES["llava"]["vision_config"], "image_size": 28}}
CASES["pixtral"] = {**CASES["llava"], "vision_feature_layer": -1, "vision_feature_select_strategy": "full",
                    "vision_config": {"model_type": "pixtral", **TOWER}}
CASES["mistral3"] = {"model_type": "mistral3", "image_token_index": IMAGE, "vision_feature_layer": -1,
                     "text_config": {"model_type": "ministral3", **TEXT}, "spatial_merge_size": 2,
                     "vision_config": {"model_type": "pixtral", **TOWER}}
CASES["internvl"] = {"model_type": "internvl", "image_token_id": IMAGE,
                     "text_config": {"model_type": "qwen3", **TEXT},
                     "vision_config": {**TOWER, "image_size": [56, 56], "patch_size": [14, 14]}}
CASES["internvl-norms"] = {**CASES["internvl"],
                           "vision_config": {**CASES["internvl"]["vision_config"], "use_qk_norm": True,
                                             "norm_type": "rms_norm", "attention_bias": True}}
CASES["idefics3"] = {"model_type": "idefics3", "image_token_id": IMAGE, "text_config": {"model_type": "llama", **TEXT},
                     "vision_config": dict(TOWER)}
CASES["smolvlm"] = {**CASES["idefics3"], "model_type": "smolvlm"}
CASES["qwen3_vl_moe"] = {
    **CASES["qwen3_vl"], "model_type": "qwen3_vl_moe",
    "text_config": {**CASES["qwen3_vl"]["text_config"], "model_type": "qwen3_vl_moe_text", "num_experts": 8,
                    "num_experts_per_tok": 2, "moe_intermediate_size": 96},
}
JOINING = ("mistral3", "internvl", "idefics3", "smolvlm", "llama4")  # four patches to a token
CASES["qwen3_5"] = {
    **CASES["qwen3_vl"], "model_type": "qwen3_5",
    "text_config": {**CASES["qwen3_vl"]["text_config"], "model_type": "qwen3_5_text", "linear_num_value_heads": 4,
                    "linear_num_key_heads": 2, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}},
}
CASES["llama4"] = {
    "model_type": "llama4", "image_token_index": IMAGE, "boi_token_index": 509, "eoi_token_index": 508,
    "text_config": {"model_type": "llama4_text", **TEXT, "num_local_experts": 4, "num_experts_per_tok": 1,
                    "intermediate_size_mlp": 224, "interleave_moe_layer_step": 2, "attention_chunk_size": 128},
    "vision_config": {**TOWER, "intermediate_size": 256, "pixel_shuffle_ratio": 0.5, "projector_input_dim": 96,
                      "projector_output_dim": 96, "vision_output_dim": 96},
}
PAIR_TEXT = {k: TEXT[k] for k in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                  "vocab_size", "max_position_embeddings")}
CASES["clip"] = {"model_type": "clip", "architectures": ["CLIPModel"], "projection_dim": 96,
                 "text_config": {**PAIR_TEXT, "eos_token_id": 500}, "vision_config": dict(TOWER)}
CASES["siglip"] = {"model_type": "siglip", "architectures": ["SiglipModel"],
                   "text_config": {**PAIR_TEXT, "projection_size": TOWER["hidden_size"]}, "vision_config": dict(TOWER)}
CASES["qwen2_audio"] = {
    "model_type": "qwen2_audio", "audio_token_index": IMAGE, "text_config": {"model_type": "qwen2", **WITHOUT_HEAD_DIM},
    "audio_config": {"d_model": 64, "encoder_layers": 3, "encoder_attention_heads": 4, "encoder_ffn_dim": 128,
                     "num_mel_bins": 32, "max_source_positions": 32},
}
CASES["qwen2_audio-padded"] = {**CASES["qwen2_audio"], "sound_tokens": 8}  # a key of this program
# 9 patches and the class's row of each of four tiles, which are filled up to 16; layers 0 and 2 are read too.
CASES["mllama"] = {
    "model_type": "mllama",
    "text_config": {"model_type": "mllama_text_model", **WITHOUT_HEAD_DIM, "cross_attention_layers": [1, 3]},
    "vision_config": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_global_layers": 2,
                      "attention_heads": 4, "image_size": 42, "patch_size": 14, "vision_output_dim": 192,
                      "intermediate_layers_indices": [0, 2]},
}
GEMMA4_TOWER = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4,
                "num_key_value_heads": 4, "head_dim": 16, "patch_size": 8, "pooling_kernel_size": 2,
                "position_embedding_size": 32}
GEMMA4_SIDE = 8  # patches of an image along both sides, which are 16 tokens
CASES["gemma4"] = {
    "model_type": "gemma4", "image_token_id": IMAGE, "vision_soft_tokens_per_image": 16,
    "text_config": {"model_type": "gemma4_text", **TEXT, "global_head_dim": 64, "hidden_size_per_layer_input": 0,
                    "layer_types": ["sliding_attention", "full_attention"] * 2},
    "vision_config": {"model_type": "gemma4_vision", **GEMMA4_TOWER},
}
CASES["gemma4-padded"] = {  # a quarter of the patches is empty
    **CASES["gemma4"], "left_tokens": 12,  # a key of this program
    "text_config": {**CASES["gemma4"]["text_config"], "use_bidirectional_attention": "vision"},
    "vision_config": {"model_type": "gemma4_vision", **GEMMA4_TOWER, "standardize": True, "use_clipped_linears": True},
}
CASES["gemma4-layers"] = {
    **CASES["gemma4"],
    "text_config": {**CASES["gemma4"]["text_config"], "hidden_size_per_layer_input": 16, "num_kv_shared_layers": 2,
                    "vocab_size_per_layer_input": 512, "use_double_wide_mlp": True},
}
PAIRS = ("clip", "siglip")
QWEN_GRID = [1, 8, 8]  # patches of an image: 64, which are 16 tokens


def side_of(config: dict) -> int:
    side = config["vision_config"]["image_size"]
    return side[0] if isinstance(side, list) else side


def tokens_of(config: dict) -> int:
    """Tokens that an image takes in the sequence."""
    if config["model_type"] in PAIRS:
        return 0
    if config["model_type"] == "mllama":
        return 1
    if config["model_type"] == "gemma4":
        return config.get("left_tokens", config["vision_soft_tokens_per_image"])
    if "audio_config" in config:
        return config.get("sound_tokens", config["audio_config"]["max_source_positions"] // 2)
    if "mm_tokens_per_image" in config:
        return config["mm_tokens_per_image"]
    if "depth" in config["vision_config"]:
        return QWEN_GRID[1] * QWEN_GRID[2] // 4
    row = side_of(config) // TOWER["patch_size"]
    patches = row * row
    if config["model_type"] == "llava_next":  # whole, and in four pieces with a newline behind each row
        return 5 * patches + 2 * row
    return patches // 4 if config["model_type"] in JOINING else patches


def part_of(name: str) -> str:
    """Which part of the network a parameter belongs to."""
    if "projector" in name or "visual_projection" in name or "connector" in name or "image_newline" in name or "embed_vision" in name or ".merger" in name or "deepstack_merger" in name:
        return "projector"
    return "tower" if "audio_tower" in name or "vision_tower" in name or "visual." in name or "vision_model" in name else "text"


def build(config: dict, attention: str, dtype: torch.dtype, frozen: tuple) -> torch.nn.Module:
    options = {k: v for k, v in config.items() if k != "model_type"}
    parsed = transformers.AutoConfig.for_model(config["model_type"], **options)
    parsed.get_text_config().use_cache = False
    pair = config["model_type"] in PAIRS
    mapping = transformers.MODEL_MAPPING if pair else transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    cls = transformers.Qwen2AudioForConditionalGeneration if "audio_config" in config else mapping[type(parsed)]
    torch.manual_seed(0)
    model = cls._from_config(parsed, attn_implementation=attention, dtype=dtype).train()
    for name, parameter in model.named_parameters():
        if part_of(name) in frozen:
            parameter.requires_grad_(False)
    return model


def inputs_of(config: dict, batch: int, sequence: int, dtype: torch.dtype) -> dict:
    """One image a sample, at the begin of the sequence."""
    tokens = tokens_of(config)
    ids = torch.randint(1, 500, (batch, sequence))
    ids[:, 1 : 1 + tokens] = IMAGE
    inputs = {"input_ids": ids, "labels": ids, "attention_mask": torch.ones_like(ids)}
    if "audio_config" in config:
        frames = 2 * config["audio_config"]["max_source_positions"]
        inputs["input_features"] = torch.randn(batch, config["audio_config"]["num_mel_bins"], frames)
        inputs["feature_attention_mask"] = torch.ones(batch, frames, dtype=torch.long)
        inputs["feature_attention_mask"][:, 4 * tokens:] = 0
        return inputs
    if "depth" in config["vision_config"]:
        rows = batch * QWEN_GRID[1] * QWEN_GRID[2]
        inputs["pixel_values"] = torch.randn(rows, 3 * 2 * 14 * 14)
        inputs["image_grid_thw"] = torch.tensor([QWEN_GRID] * batch)
        inputs["mm_token_type_ids"] = (ids == IMAGE).int()
        return inputs
    if config["model_type"] == "gemma4":
        patches = GEMMA4_SIDE * GEMMA4_SIDE
        places = torch.tensor([[x, y] for y in range(GEMMA4_SIDE) for x in range(GEMMA4_SIDE)])
        places[4 * tokens:] = -1
        inputs["pixel_values"] = torch.rand(batch, patches, 3 * 8 * 8)
        inputs["image_position_ids"] = places.expand(batch, patches, 2).contiguous()
        inputs["mm_token_type_ids"] = (ids == IMAGE).int()
        return inputs
    side = side_of(config)
    if config["model_type"] == "mllama":
        inputs["pixel_values"] = torch.randn(batch, 1, 4, 3, side, side)
        inputs["aspect_ratio_ids"] = torch.full((batch, 1), 6)
        inputs["aspect_ratio_mask"] = torch.ones(batch, 1, 4, dtype=torch.long)
        inputs["cross_attention_mask"] = torch.ones(batch, sequence, 1, 4, dtype=torch.long)
        return inputs
    inputs["pixel_values"] = torch.randn(batch, 3, side, side)
    if config["model_type"] in PAIRS:
        return {"input_ids": ids, "pixel_values": inputs["pixel_values"], "return_loss": True}
    if config["model_type"] == "llava_next":
        inputs["pixel_values"] = torch.randn(batch, 5, 3, side, side)
        inputs["image_sizes"] = torch.tensor([[2 * side, 2 * side]] * batch)
    if config["model_type"] == "llama4":  # its tower does not cast them
        inputs["pixel_values"] = inputs["pixel_values"].to(dtype)
    if config["model_type"] in ("idefics3", "smolvlm"):
        inputs["pixel_values"] = inputs["pixel_values"][:, None]
    if config["vision_config"].get("model_type") == "pixtral":
        inputs["image_sizes"] = torch.tensor([[side, side]] * batch)
    if config["model_type"] in ("gemma3", "paligemma"):
        inputs["token_type_ids"] = (ids == IMAGE).long()
    return inputs


def measure(name: str, config: dict, attention: str, frozen: str, run: tuple) -> dict:
    batch, sequence, dtype = run
    model = build(config, attention, dtype, FROZEN[frozen])
    return {
        "case": name,
        "config": config,
        "attention": attention,
        "frozen": frozen,
        "image_tokens": tokens_of(config),
        "dtype": str(dtype).removeprefix("torch."),
        "batch": batch,
        "sequence": sequence,
        **saved_storages(model, inputs_of(config, batch, sequence, dtype), alive=True),
    }


def main() -> None:
    args = arguments(__doc__, "saved_tensors_images.json")
    torch.set_num_threads(1)
    cases, orders = [], {}
    for name, config in CASES.items():
        if args.only and name != args.only:
            continue
        for attention in ("sdpa", "eager"):
            for frozen in FROZEN:
                for run in RUNS:
                    if "linear_num_key_heads" in config["text_config"]:
                        run = (run[0], 128, run[2])  # chunks of 64 tokens
                    cases.append(measure(name, config, attention, frozen, run))
        model = build(config, "eager", torch.float32, ())
        orders[name] = [parameter for parameter, _ in model.named_parameters()]
    if args.only:
        print_cases(cases)
    else:
        write_golden(args.out, "saved_tensors_images.py", cases, orders)


if __name__ == "__main__":
    main()
