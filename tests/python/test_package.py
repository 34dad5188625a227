"""The package as it was installed: its types, its keywords, its size, how fast it starts."""

import ast
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import shardplan
from shardplan import _core


def test_module_and_program_have_one_version(program):
    assert shardplan.__version__ == metadata.version("shardplan")
    assert program("--version").stdout.strip() == shardplan.__version__


def test_the_module_needs_only_the_c_library():
    needed = subprocess.run(["readelf", "-d", _core.__file__], capture_output=True, text=True)
    lines = [line for line in needed.stdout.splitlines() if "NEEDED" in line]
    libraries = {line.split("[")[1].rstrip("]") for line in lines}
    of_the_platform = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libgcc_s.so.1"}
    assert libraries <= of_the_platform | {"ld-linux-x86-64.so.2"}


def test_types_are_complete(source):
    """Of the package and of what a user gets from it."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", source / "pyproject.toml", "--no-incremental",
         "--package", "shardplan"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout


def test_the_stub_is_of_this_module():
    stub = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text())
    said = {
        node.name if hasattr(node, "name") else node.target.id: node
        for node in stub.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign))
    }
    assert set(said) == {name for name in vars(_core) if name == "__version__" or name[0] != "_"}
    for name, node in said.items():
        if isinstance(node, ast.FunctionDef):
            arguments = [argument.arg for argument in node.args.args]
            signature = getattr(_core, name).__doc__.split("\n")[0]
            assert all(f"{argument}:" in signature for argument in arguments), signature
            assert signature.count(":") == len(arguments)
        elif isinstance(node, ast.ClassDef):
            members = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
            assert members == {name for name in vars(getattr(_core, name)) if name[0] != "_"}


def test_keywords_are_the_programs_flags(source):
    command = Path(sys.executable).parent / "shardplan"
    script = source / "tools/make_python_flags.sh"
    checked = subprocess.run([script, "--check", command], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_heavy_modules_are_not_imported():
    code = "import shardplan, sys; shardplan.fit('7B', '8xH100'); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert not {"pandas", "transformers", "torch", "json"} & set(modules.stdout.split())
