"""Networks that read the samples of sounds: how many make a job's frames, a batch of them, what a job freezes."""
import torch
import transformers

SOUNDS = {"wav2vec2"}


def sound_class(config):
    """The class that the configuration names, or the one with CTC's loss."""
    named = config.architectures
    return getattr(transformers, named[0]) if named else transformers.MODEL_FOR_CTC_MAPPING[type(config)]


def samples_of(config, frames: int) -> int:
    """The most samples that leave so many frames."""
    for kernel, stride in zip(reversed(config.conv_kernel), reversed(config.conv_stride)):
        frames = frames * stride + kernel - 1
    return frames


def freeze(model, frozen: str) -> None:
    if frozen == "tower":
        model.freeze_feature_encoder()


def labels_of(config, batch: int, frames: int, labels: int, device="cpu") -> dict:
    """What the class is given beside samples; `labels`: of each sequence, where they are aligned."""
    named = (config.architectures or ["ForCTC"])[0]
    if named.endswith("Model"):
        return {}
    if named.endswith("ForSequenceClassification"):
        return {"labels": torch.zeros(batch, dtype=torch.long, device=device)}
    if named.endswith("ForAudioFrameClassification"):
        return {"labels": torch.zeros(batch, frames, config.num_labels, device=device)}
    return {"labels": torch.randint(1, config.vocab_size, (batch, labels), device=device)}


def sound_batch(job: dict, config, device, dtype: torch.dtype) -> dict:
    """Random samples in the parameters' type, random labels."""
    work = job["workload"]
    batch, frames = work["micro_batch"], work["sequence_length"]
    samples = torch.randn(batch, samples_of(config, frames), device=device).to(dtype)
    labels = labels_of(config, batch, frames, work.get("target_length", frames), device)
    return {"input_values": samples, **labels}
