"""Predictions beside a Trainer: transformers' own classes, and a run of as many steps as are told.

torch is not installed here, so nothing trains; docs/how-to/python.md says what was run on GPUs.
"""

import sys
import types

import pytest

import shardplan

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
from fake_torch import fake_torch  # noqa: E402

GIB = 2**30


def network(**config):
    small = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 8}
    config = transformers.LlamaConfig(**{**small, **config})
    return types.SimpleNamespace(config=config, dtype="torch.bfloat16")


class TrainingArguments(transformers.TrainingArguments):
    """With the ranks that a launcher would count: without torch they cannot be."""

    world_size = 1
    n_gpu = 1


def trainer(model=None, dataset=(), **said):
    args = TrainingArguments(output_dir="out", **said)
    return types.SimpleNamespace(args=args, model=model or network(), train_dataset=dataset)


def run(callback, trainer, steps):
    """What Trainer calls, in its order."""
    state = transformers.TrainerState(is_world_process_zero=True)
    control = transformers.TrainerControl()
    loader = types.SimpleNamespace(dataset=trainer.train_dataset)
    flow = transformers.trainer_callback.DefaultFlowCallback()
    handler = transformers.trainer_callback.CallbackHandler(
        [flow, callback], trainer.model, None, None, None
    )
    handler.train_dataloader = loader
    control = handler.on_train_begin(trainer.args, state, control)
    for _ in range(steps):
        control = handler.on_step_begin(trainer.args, state, control)
        control = handler.on_step_end(trainer.args, state, control)
    handler.on_train_end(trainer.args, state, control)


def test_check_says_what_the_same_job_says():
    checked = shardplan.check(
        trainer(per_device_train_batch_size=4, gradient_checkpointing=True, bf16=True),
        cluster="1xA100-40GB",
        sequence_length=512,
    )
    config = network().config.to_dict()
    job = {
        "model": config,
        "cluster": "1xA100-40GB",
        "framework": "single",
        "workload": {"micro_batch": 4, "gradient_accumulation": 1, "sequence_length": 512},
        "precision": "bf16-pure",
        "optimizer": {"name": "adamw", "implementation": "foreach"},
        "checkpointing": "full",
        "trainer": "hf_trainer",
        "gradient_clipping": 1.0,
    }
    assert checked.gpu == shardplan.estimate(job).gpu


def test_deepspeed_and_its_autos_are_read():
    parameters = []
    for stage in (1, 3):
        ds_config = {
            "train_micro_batch_size_per_gpu": "auto",
            "gradient_accumulation_steps": "auto",
            "bf16": {"enabled": "auto"},
            "zero_optimization": {"stage": stage, "stage3_prefetch_bucket_size": "auto"},
        }
        run = trainer(bf16=True, per_device_train_batch_size=2)
        run.args.deepspeed = ds_config  # the constructor wants accelerate
        checked = shardplan.check(run, cluster="4xA100-40GB", sequence_length=512)
        assert f"DeepSpeed ZeRO-{stage}" in str(checked)
        parameters.append(checked.gpu.breakdown[0].resident_bytes)
    assert parameters[1] < 0.3 * parameters[0]


def test_samples_say_how_long_they_are():
    dataset = [{"input_ids": [0] * length} for length in (100, 700, 300)]
    checked = shardplan.check(trainer(dataset=dataset), cluster="1xA100-40GB")
    assert "sequence_length: 700" in checked.remarks
    same = shardplan.check(trainer(), cluster="1xA100-40GB", sequence_length=700)
    assert checked.gpu == same.gpu


def test_adapters_and_quantized_bases_are_read():
    model = network(quantization_config={"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"})
    lora = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": {"q_proj", "v_proj"}}
    adapter = types.SimpleNamespace(to_dict=lambda: lora)
    model.peft_config, model.active_adapter = {"default": adapter}, "default"
    checked = shardplan.check(trainer(model=model), cluster="1xA100-40GB", sequence_length=512)
    q, v = 1024 * 8 + 8 * 1024, 1024 * 8 + 8 * 1024
    assert checked.model.trainable_parameters == 8 * (q + v)
    assert "base in 4 bits" in str(checked)


def test_the_machine_says_its_gpus(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", fake_torch([], [], gpus=4))
    run = trainer()
    run.args.world_size = 8
    checked = shardplan.check(run, sequence_length=512)
    told = shardplan.check(trainer(), cluster="2x4xA100-40GB", sequence_length=512)
    assert checked.gpu == told.gpu
    run.args.n_gpu = 4
    with pytest.raises(shardplan.InputError, match="DataParallel"):
        shardplan.check(run)


def test_without_gpus_the_cluster_has_to_be_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(shardplan.InputError, match="no GPU here; expected cluster="):
        shardplan.check(trainer())


def test_the_callback_predicts_and_compares(monkeypatch, capsys):
    allocated = [3 * GIB, 4 * GIB, 2 * GIB]
    reserved = [5 * GIB, 5 * GIB, 6 * GIB]
    monkeypatch.setitem(sys.modules, "torch", fake_torch(allocated, reserved))
    callback = shardplan.PredictionCallback(sequence_length=512)
    assert isinstance(callback, transformers.TrainerCallback)
    run(callback, trainer(), steps=3)
    said = capsys.readouterr().out
    assert said.index("shardplan predicts: FITS: llama") < said.index("shardplan compares: llama")
    rows = {row["quantity"]: row for row in callback.comparison.rows()}
    assert rows["allocated_bytes"]["measured"] == 4 * GIB
    assert rows["reserved_bytes"]["measured"] == 6 * GIB
    predicted = callback.prediction.gpu.peak.reserved.point
    assert rows["reserved_bytes"]["predicted"] == predicted
    assert rows["reserved_bytes"]["error"] == pytest.approx(predicted / (6 * GIB) - 1)
    assert rows["step_seconds"]["measured"] > 0
    assert "measured 6 GiB" in str(callback.comparison)
    assert "<td style=\"text-align: right\">6 GiB</td>" in callback.comparison._repr_html_()


def test_without_a_gpu_nothing_is_compared(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    callback = shardplan.PredictionCallback(cluster="1xA100-40GB", sequence_length=512)
    run(callback, trainer(), steps=2)
    assert {row["measured"] for row in callback.comparison.rows()} == {None}
    assert "nothing was measured" in repr(callback.comparison)


def test_a_run_that_must_fit_ends_before_its_first_step():
    large = trainer(model=network(hidden_size=8192, num_hidden_layers=80))
    callback = shardplan.PredictionCallback(
        cluster="1xA100-40GB", sequence_length=512, must_fit=True
    )
    with pytest.raises(shardplan.DoesNotFit, match="DOES NOT FIT: "):
        run(callback, large, steps=1)
    callback = shardplan.PredictionCallback(cluster="1xA100-40GB", sequence_length=512)
    run(callback, large, steps=1)
    assert not callback.prediction.fits


def test_a_run_that_cannot_be_estimated_trains_all_the_same(capsys):
    callback = shardplan.PredictionCallback(cluster="1xA100-40GB", framework="fsdp9")
    run(callback, trainer(), steps=2)
    assert callback.prediction is None and callback.comparison is None
    assert "cannot predict this run: " in capsys.readouterr().out


def test_what_only_the_launcher_knows_has_to_be_given(monkeypatch, source):
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(shardplan.InputError, match="launched this run under fsdp"):
        shardplan.check(trainer(), cluster="8xH100-80GB", sequence_length=512)
    launched = source / "configs/trainers/accelerate-fsdp2.yaml"
    checked = shardplan.check(trainer(), launched, cluster="8xH100-80GB", sequence_length=512)
    assert "with FSDP2" in str(checked)


def test_errors_name_the_arguments_class():
    run = trainer()
    run.args.optim = "adamw_of_mine"
    with pytest.raises(shardplan.InputError, match="^<TrainingArguments>: "):
        shardplan.check(run, cluster="1xA100-40GB", sequence_length=512)
