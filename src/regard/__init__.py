"""Regard: train, run, measure and see attention models.

>>> import regard
>>> pairs = regard.corpus(size=5_000, words="small").train
>>> trained = regard.train("seq2seq-attention", data=pairs, out="runs/mine")
>>> model = regard.load("runs/mine")
>>> t = model.translate("cats do not like dogs")
>>> t.text, t.score, t.attention.weights

Whatever a command does, a function does with the same code:

train(recipe, data=..., set=..., out=...)   train, test and report
plan(recipe, data=..., set=...)             what that would read and take: memory and time
load(run)                                   the best model of a run
summary(recipe or run)                      its layers and their parameters, and a diagram
look(run, text), trace(run, text)           what it attends to, and every value on the way
intervene(run, text, hide=...)              change what it attends to, and see what becomes of it
explain(run, text)                          which source words decided, by several methods
translate_file(run, source, output)         files of any size and format
compare([run, ...])                         several translators on one test set
score(system, reference)                    BLEU and chrF with their signatures
forecast(file or numbers)                   a series and its forecast
finetune(run, file)                         a language model on other text, labels or answers
tune(run)                                   the length penalty that suits a translator
import_model(path, out=...)                 a run of a model that another program trained
corpus()                                    the built-in sentence pairs
corpus.fetch, filter, mix, split, stats     corpora of files, as professionals prepare them
computing_on("cuda:1")                      a block that computes on this device
use("my_parts.py")                          a score, position or task of your own
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.api import (
        TranslationScores,
        compare,
        explain,
        forecast,
        intervene,
        score,
        score_alignments,
    )
    from regard.base.errors import DataError, RegardError, RunError, SettingsError
    from regard.compute.device import computing_on
    from regard.data import Corpus, corpus
    from regard.documents.translation import translate_file
    from regard.runs.catalogue import use
    from regard.studies.finetuning import finetune
    from regard.tasks import find_recipe, load, look, trace, train
    from regard.tasks.architecture import summary
    from regard.tasks.exchange import import_model
    from regard.tasks.planning import plan
    from regard.tasks.translation.tuning import tune

__version__ = "0.1.0"
__all__ = [
    "Corpus",
    "DataError",
    "RegardError",
    "RunError",
    "SettingsError",
    "TranslationScores",
    "__version__",
    "compare",
    "computing_on",
    "corpus",
    "explain",
    "find_recipe",
    "finetune",
    "forecast",
    "import_model",
    "intervene",
    "load",
    "look",
    "plan",
    "score",
    "score_alignments",
    "summary",
    "trace",
    "train",
    "translate_file",
    "tune",
    "use",
]

# Loaded on first use: torch and matplotlib take seconds that `regard --help` should not.
_WHERE = {
    "Corpus": "regard.data",
    "TranslationScores": "regard.api",
    "compare": "regard.api",
    "computing_on": "regard.compute.device",
    "explain": "regard.api",
    "corpus": "regard.data",
    "forecast": "regard.api",
    "intervene": "regard.api",
    "score": "regard.api",
    "score_alignments": "regard.api",
    "DataError": "regard.base.errors",
    "RegardError": "regard.base.errors",
    "RunError": "regard.base.errors",
    "SettingsError": "regard.base.errors",
    "translate_file": "regard.documents.translation",
    "finetune": "regard.studies.finetuning",
    "find_recipe": "regard.tasks",
    "import_model": "regard.tasks.exchange",
    "load": "regard.tasks",
    "look": "regard.tasks",
    "plan": "regard.tasks.planning",
    "summary": "regard.tasks.architecture",
    "trace": "regard.tasks",
    "train": "regard.tasks",
    "tune": "regard.tasks.translation.tuning",
    "use": "regard.runs.catalogue",
}
__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
