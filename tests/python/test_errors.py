"""A bad input is one exception, with the program's message."""

import pytest

import shardplan


def message_of(program, *arguments):
    stderr = program(*arguments).stderr
    return stderr.removeprefix("shardplan: ").split("\nRun with --help")[0].rstrip("\n")


@pytest.mark.parametrize(
    "arguments, flags",
    [
        (("lama-2-7b", "8xH100"), {}),
        (("llama-2-7b", "8xH1000"), {}),
        (("llama-2-7b", "8xH100"), {"zero_stage": 7}),
        (("llama-2-7b", "8xH100"), {"micro_bach": 2}),
        (("llama-2-7b", "8xH100"), {"micro_batch": "many"}),
        (("llama-2-7b",), {}),
    ],
)
def test_messages_are_the_programs(program, arguments, flags):
    typed = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    with pytest.raises(shardplan.InputError) as raised:
        shardplan.fit(*arguments, **flags)
    assert str(raised.value) == message_of(program, "fit", *arguments, *typed) != ""


def test_parts_of_a_message_are_attributes(tmp_path):
    job = tmp_path / "job.json"
    job.write_text('{"model": "gpt2",\n "cluster": "1xA100-40GB",\n "precison": "fp32"}')
    with pytest.raises(shardplan.InputError) as raised:
        shardplan.estimate(job)
    error = raised.value
    assert (error.file, error.key, error.nearest) == (str(job), "precison", "precision")
    with pytest.raises(shardplan.InputError) as raised:
        job.write_text("{")
        shardplan.estimate(job)
    assert raised.value.line == 1


def test_a_dictionary_is_named_as_what_it_is():
    with pytest.raises(shardplan.InputError, match=r"^<job>: precison: "):
        shardplan.estimate({"model": "gpt2", "cluster": "1xA100-40GB", "precison": "fp32"})


def test_what_is_no_document_is_a_type_error():
    with pytest.raises(TypeError, match="object is no name, path"):
        shardplan.fit(object(), "8xH100")


def test_an_error_leaves_nothing_behind():
    """What was given for one question is not there for the next."""
    with pytest.raises(shardplan.InputError):
        shardplan.estimate({"model": "gpt2"})
    with pytest.raises(shardplan.InputError, match="'<job>' is no model of the catalogue and no file"):
        shardplan.estimate("<job>", "1xA100-40GB")
