"""Language modelling: the next token of a text."""

from regard.tasks import Task, part
from regard.tasks.language_modelling.settings import LanguageModelRecipe

TASK = Task(
    schema=LanguageModelRecipe,
    train=part("regard.tasks.language_modelling.training:train"),
    load=part("regard.tasks.language_modelling.model:load"),
    build=part("regard.tasks.language_modelling.model:build"),
    report=part("regard.tasks.language_modelling.report:write_report"),
    views={
        "map": part("regard.tasks.language_modelling.views:heads_view"),
        "heads": part("regard.tasks.language_modelling.views:heads_view"),
        "word": part("regard.tasks.language_modelling.views:word_view"),
        "arcs": part("regard.tasks.language_modelling.views:arcs_view"),
    },
)
