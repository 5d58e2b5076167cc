"""Language modelling: the next token of a text."""

from regard.tasks import LazyFunction, Task
from regard.tasks.language_modelling.settings import LanguageModelRecipe

TASK = Task(
    schema=LanguageModelRecipe,
    train=LazyFunction("regard.tasks.language_modelling.training:train"),
    load=LazyFunction("regard.tasks.language_modelling.model:load"),
    build=LazyFunction("regard.tasks.language_modelling.model:build"),
    report=LazyFunction("regard.tasks.language_modelling.report:write_report"),
    views={
        "map": LazyFunction("regard.tasks.language_modelling.views:heads_view"),
        "heads": LazyFunction("regard.tasks.language_modelling.views:heads_view"),
        "word": LazyFunction("regard.tasks.language_modelling.views:word_view"),
        "arcs": LazyFunction("regard.tasks.language_modelling.views:arcs_view"),
        "lens": LazyFunction("regard.tasks.language_modelling.views:lens_view"),
    },
    fine_tune=LazyFunction("regard.tasks.language_modelling.fine_tuning:fine_tune"),
    store=LazyFunction("regard.tasks.language_modelling.exchange:store"),
    intervene=LazyFunction(
        "regard.tasks.language_modelling.interventions:intervene_in_language_model"
    ),
    trace=LazyFunction("regard.tasks.language_modelling.trace:trace_language_model"),
)
