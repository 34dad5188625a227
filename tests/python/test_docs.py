"""docs/how-to/python.md does what it shows."""

import ast
import doctest
import re

import pytest


@pytest.fixture
def blocks(source):
    return re.findall(r"```python\n(.*?)```", (source / "docs/how-to/python.md").read_text(), re.DOTALL)


def test_sessions_print_what_they_show(blocks):
    session = "\n".join(block for block in blocks if block.startswith(">>>"))
    test = doctest.DocTestParser().get_doctest(session, {}, "python.md", "docs/how-to/python.md", 0)
    said = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert result.attempted > 10
    assert result.failed == 0, "".join(said)


def test_programs_are_python(blocks):
    programs = [block for block in blocks if not block.startswith(">>>")]
    assert programs
    for program in programs:
        ast.parse(program)
