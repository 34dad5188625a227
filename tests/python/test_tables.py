"""How answers look."""

from html.parser import HTMLParser

import pytest

import shardplan

QUESTION = ("llama-2-7b", "4xA100-40GB")


class Cells(HTMLParser):
    """The texts of a table's cells, and whether every tag was closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_repr_says_the_verdict():
    assert repr(shardplan.fit(*QUESTION)).startswith("<Fit FITS: llama-2-7b, 38.2 GiB of 39.4 GiB")
    too_large = shardplan.fit("llama-2-7b", "1xRTX4090")
    assert not too_large.fits
    assert repr(too_large).startswith("<Fit DOES NOT FIT: llama-2-7b")


def test_notebooks_get_a_whole_table():
    fit = shardplan.fit(*QUESTION)
    cells = Cells(fit._repr_html_())
    assert not cells.open
    for line in fit.gpu.breakdown:
        assert line.category in cells.texts
    assert fit.headline() in cells.texts


def test_html_escapes_what_files_say():
    job = {"model": {"mlp": [4, 4]}, "cluster": {"gpu": {"memory_bytes": 1e9}, "label": "<b>"}}
    answer = shardplan.estimate(job)
    answer.data["model"]["name"] = "<script>"
    assert "<script>" not in answer._repr_html_()


def test_rows_become_frames():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    fit = shardplan.fit(*QUESTION)
    frame = fit.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.at_peak_bytes.sum() == fit.peak_bytes
    assert list(frame.columns) == ["category", "resident_bytes", "at_peak_bytes", "source"]
    assert len(shardplan.lint({"train_batch_size": 8}).to_pandas()) > 0
