"""The questions. Every flag of the program's command is a keyword: `sequence_length=4096`."""

from __future__ import annotations

from .estimates import Estimate, Fit
from .imports import Imported
from .lints import Lint
from .question import Question
from .searches import Search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from typing_extensions import Unpack

    from .documents import Document
    from .flags import EstimateFlags, FitFlags, ImportFlags, LintFlags, SearchFlags


def fit(
    model: Document, cluster: Optional[Document] = None, **flags: Unpack[FitFlags]
) -> Fit:
    """Will this model train on these GPUs, and what would make more room?

    `model` is a name of the catalogue, a size such as "7B", a config.json or what it holds, or a
    trainer's file; `cluster` is words such as "4xA100-40GB" or a mapping.
    """
    return Fit(Question("fit", _words(model=model, cluster=cluster), flags))


def estimate(*job: Document, **flags: Unpack[EstimateFlags]) -> Estimate:
    """What one job needs: memory by category and phase, traffic, time and cost.

    `job` is a job file or mapping, or a trainer's files or what they hold; a cluster may stand
    last.
    """
    return Estimate(Question("estimate", [(part, "job") for part in job], flags))


def search(*job: Document, **flags: Unpack[SearchFlags]) -> Search:
    """The best of all plans for the job. Ctrl-C ends it with the best so far."""
    return Search(Question("search", [(part, "job") for part in job], flags))


def lint(
    config: Optional[Document] = None,
    model: Optional[Document] = None,
    cluster: Optional[Document] = None,
    **flags: Unpack[LintFlags],
) -> Lint:
    """Mistakes in a DeepSpeed configuration. Findings are an answer, not an exception."""
    return Lint(Question("lint", _words(ds_config=config, model=model, cluster=cluster), flags))


def import_(*files: Document, **flags: Unpack[ImportFlags]) -> Imported:
    """Trainers' own files, or what they hold, turned into one job."""
    return Imported(Question("import", [(file, "file") for file in files], flags))


def _words(**documents: Optional[Document]) -> list[tuple[Document, str]]:
    return [(document, name) for name, document in documents.items() if document is not None]
