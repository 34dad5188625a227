"""Samples of random tokens and random images for networks that read both, as their processors make them."""
import math

import torch
from torch.utils.data import Dataset

TOWER = ("vision_tower", "visual.", "vision_model")
PROJECTOR = ("projector", ".merger", "deepstack_merger", "visual_projection", "embed_vision")
FROZEN = {"nothing": (), "tower": ("tower",), "tower_and_projector": ("tower", "projector")}
HIGHEST_TOKEN = 1000  # of text: below all that stand for something else


def part_of(name):
    """Which part of the network a parameter belongs to."""
    if any(word in name for word in PROJECTOR):
        return "projector"
    return "tower" if any(word in name for word in TOWER) else "text"


def freeze(model, frozen):
    """`frozen`: a job's word for what does not train before the text model."""
    for name, parameter in model.named_parameters():
        if part_of(name) in FROZEN[frozen]:
            parameter.requires_grad_(False)


class RandomImages(Dataset):
    """`images` of `tokens` tokens each at the begin of a sample, random tokens behind them, which are the labels too."""

    def __init__(self, config, work):
        self.config, self.length = config, work["sequence_length"]
        self.images, self.tokens = work["images"], work["image_tokens"]
        self.any_size = hasattr(config.vision_config, "spatial_merge_size")  # Qwen's towers

    def __len__(self):
        return 4096

    def _image_token(self):
        found = getattr(self.config, "image_token_id", None)
        return self.config.image_token_index if found is None else found

    def _pixels(self):
        vision = self.config.vision_config
        if self.config.model_type == "llama4":  # tiles of one size, the whole among them
            each = int((vision.image_size // vision.patch_size * vision.pixel_shuffle_ratio) ** 2)
            tiles = self.images * self.tokens // each
            return {"pixel_values": torch.randn(tiles, 3, vision.image_size, vision.image_size)}
        if self.config.model_type == "gemma4":
            return self._filled_up(vision)
        if not self.any_size:
            return {"pixel_values": torch.randn(self.images, 3, vision.image_size, vision.image_size)}
        merged = vision.spatial_merge_size
        high = 2 ** int(math.log2(math.isqrt(self.tokens)))  # tokens of a column
        grid = [1, high * merged, self.tokens // high * merged]
        each = 3 * vision.temporal_patch_size * vision.patch_size**2
        return {"pixel_values": torch.randn(self.images * grid[1] * grid[2], each),
                "image_grid_thw": torch.tensor([grid] * self.images)}

    def _filled_up(self, vision):
        """Gemma 4: patches of one column of tokens, and empty ones up to what the processor makes at most."""
        side = vision.pooling_kernel_size
        most = getattr(self.config, "vision_soft_tokens_per_image", 280) * side**2
        places = torch.full((most, 2), -1)
        for patch in range(self.tokens * side**2):
            places[patch] = torch.tensor([patch % side, patch // side])
        pixels = torch.rand(self.images, most, 3 * vision.patch_size**2)
        return {"pixel_values": pixels, "image_position_ids": places.expand(self.images, -1, -1).contiguous()}

    def __getitem__(self, index):
        ids = torch.randint(1, HIGHEST_TOKEN, (self.length,), generator=torch.Generator().manual_seed(index))
        for image in range(self.images):  # a token of text before each
            begin = 1 + image * (self.tokens + 1)
            ids[begin:begin + self.tokens] = self._image_token()
        shown = ids == self._image_token()
        sample = {"input_ids": ids, "labels": ids.clone(), "attention_mask": torch.ones_like(ids), **self._pixels()}
        if self.any_size or self.config.model_type == "gemma4":
            sample["mm_token_type_ids"] = shown.int()
        elif self.config.model_type in ("gemma3", "paligemma"):
            sample["token_type_ids"] = shown.long()
        return sample


class RandomPairs(Dataset):
    """Texts of random tokens, each with an image, for networks that tell which belong together."""

    def __init__(self, config, work):
        self.vision, self.length = config.vision_config, work["sequence_length"]

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        ids = torch.randint(1, HIGHEST_TOKEN, (self.length,), generator=torch.Generator().manual_seed(index))
        side = self.vision.image_size
        return {"input_ids": ids, "pixel_values": torch.randn(1, self.vision.num_channels, side, side)}


def collate_pairs(samples):
    """A batch, and what asks these classes for their loss."""
    return {**collate(samples), "return_loss": True}


def collate(samples):
    """A batch: images of all samples behind each other, the rest stacked."""
    joined = ("pixel_values", "image_grid_thw", "image_position_ids")
    return {key: (torch.cat if key in joined else torch.stack)([sample[key] for sample in samples])
            for key in samples[0]}
