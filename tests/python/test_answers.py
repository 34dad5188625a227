"""The module answers what the program answers."""

import json
import pickle

import pytest

import shardplan

QUESTION = ("llama-2-7b", "4xA100-40GB")
NETWORK = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 1000,
}


def test_fit_is_the_programs_answer_to_the_byte(program):
    fit = shardplan.fit(*QUESTION)
    assert fit.to_dict() == json.loads(program("fit", *QUESTION, "--format", "json").stdout)
    assert str(fit) == program("fit", *QUESTION).stdout


def test_search_is_the_programs_answer(program):
    flags = ["--zero-stages=2,3", "--tensor-degrees=1", "--threads=2"]
    asked = program("search", "--model=gpt2", "--cluster=2xA100-40GB", *flags, "--format=json")
    found = shardplan.search(
        model="gpt2", cluster="2xA100-40GB", zero_stages=[2, 3], tensor_degrees=1, threads=2
    )
    assert found.to_dict() == json.loads(asked.stdout)
    assert found.best is not None and found.axes["strategy"] == ["ZeRO-2", "ZeRO-3"]
    assert len(found.rows()) == len(found.front) > 0
    assert found.rows()[0]["device_bytes"] == found.best.estimate.peak_bytes
    error = found.best.estimate.time.error
    assert error is not None and found.rows()[0]["step_error_largest"] == error["largest"]
    assert f"{100 * abs(error['largest']):.0f} % at most" in found.headline()


def test_every_job_of_the_repository_is_answered_alike(program, source):
    for job in sorted((source / "configs/jobs").glob("*.json")):
        asked = program("estimate", job, "--format=json")
        assert shardplan.estimate(job).to_dict() == json.loads(asked.stdout), job.name


def test_attributes_have_the_types_of_the_answer():
    fit = shardplan.fit(*QUESTION)
    assert fit.fits is True
    assert fit.gpu.peak.device.least <= fit.peak_bytes <= fit.gpu.peak.device.upper
    assert sum(line.at_peak_bytes for line in fit.gpu.breakdown) == fit.peak_bytes
    assert fit.fixes and all(fix.changes[0].what for fix in fit.fixes)
    assert fit.time.prefill_seconds is None  # only generation has it
    assert fit.cost.days is None  # of how many tokens?
    with pytest.raises(AttributeError, match="no 'tokens_per_minute'"):
        fit.time.tokens_per_minute  # noqa: B018
    assert pickle.loads(pickle.dumps(fit.gpu)) == fit.gpu


def test_flags_are_keywords():
    small = shardplan.fit(*QUESTION, sequence_length=512, framework="fsdp2", cpu_offload=True)
    assert small.gpu.peak.device.point < shardplan.fit(*QUESTION).gpu.peak.device.point
    assert not any("framework" in line for line in small.assumed)
    lora = shardplan.fit(*QUESTION, lora_rank=8, lora_targets=["q_proj", "v_proj"])
    assert lora.model.trainable_parameters == 32 * 2 * 8 * 2 * 4096


def test_dictionaries_stand_for_files(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(NETWORK))
    from_file = shardplan.fit(str(path), "2xA100-40GB").to_dict()
    from_dict = shardplan.fit(NETWORK, {"gpu": "A100-40GB", "gpus_per_node": 2}).to_dict()
    assert from_dict["gpu"] == from_file["gpu"]

    ds_config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}}
    job = {"model": NETWORK, "cluster": "2xA100-40GB"}
    nested = {**job, "framework": {"name": "deepspeed", "ds_config": ds_config}}
    flagged = shardplan.estimate(job, framework="deepspeed", ds_config=ds_config)
    assert flagged.gpu == shardplan.estimate(nested).gpu
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/job.json").write_text(json.dumps(job))
    from_folder = shardplan.estimate("jobs/job.json", framework="deepspeed", ds_config=ds_config)
    assert from_folder.gpu == flagged.gpu


def test_dictionaries_reach_every_thread():
    """Changes of such a job are fields, and the job is read again for each, on all cores."""
    fit = shardplan.fit(NETWORK, "1xA100-40GB", kind="inference", batch=512, prompt_length=8192)
    assert fit.fixes


def test_dataclasses_stand_for_files():
    import dataclasses

    @dataclasses.dataclass
    class Job:
        model: dict
        cluster: str
        precision: str = "fp32"

    estimate = shardplan.estimate(Job(NETWORK, "1xA100-40GB"))
    assert estimate.model.parameters > 0
    with pytest.raises(shardplan.InputError, match="^<Job>: precision"):
        shardplan.estimate(Job(NETWORK, "1xA100-40GB", precision="fp33"))


def test_imports_read_files_and_dictionaries(source):
    trainers = source / "configs/trainers"
    imported = shardplan.import_(trainers / "axolotl-qlora.yaml", cluster="1xRTX4090")
    assert imported.job["workload"]["lora"]["rank"] == 32
    assert "took" in {note.what for note in imported.notes}
    assert "an axolotl configuration" in imported.remarks
    estimate = shardplan.estimate(imported.job)
    direct = shardplan.estimate(trainers / "axolotl-qlora.yaml", "1xRTX4090")
    assert estimate.gpu == direct.gpu
    assert estimate.headline() == direct.headline()

    arguments = {"per_device_train_batch_size": 4, "output_dir": "out", "bf16": True}
    imported = shardplan.import_(arguments, NETWORK, cluster="2xA100-40GB")
    assert imported.job["workload"]["micro_batch"] == 4
    assert imported.job["model"]["hidden_size"] == 256


def test_lint_finds_without_raising():
    report = shardplan.lint({"zero_optimization": {"stag": 3}})
    finding = next(one for one in report.findings if one.rule == "ds.unknown-key")
    assert (finding.severity, finding.nearest) == ("error", "stage")
    assert report.errors == sum(one.severity == "error" for one in report.findings)
    priced = shardplan.lint({"train_batch_size": 8}, "gpt2", "2xA100-40GB", strict=True)
    assert priced.data["costs"]
