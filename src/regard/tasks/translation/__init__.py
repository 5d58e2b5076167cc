"""Translation: any text-to-text model, recurrent or Transformer."""

from regard.tasks import LazyFunction, Task
from regard.tasks.translation.settings import TranslationRecipe

TASK = Task(
    schema=TranslationRecipe,
    train=LazyFunction("regard.tasks.translation.training:train"),
    load=LazyFunction("regard.tasks.translation.model:load"),
    build=LazyFunction("regard.tasks.translation.model:build"),
    report=LazyFunction("regard.tasks.translation.report:write_report"),
    views={
        "map": LazyFunction("regard.tasks.translation.views:sentence_view"),
        "heads": LazyFunction("regard.tasks.translation.views:heads_view"),
        "word": LazyFunction("regard.tasks.translation.views:word_view"),
        "arcs": LazyFunction("regard.tasks.translation.views:arcs_view"),
        "step": LazyFunction("regard.tasks.translation.views:step_view"),
        "lens": LazyFunction("regard.tasks.translation.views:lens_view"),
        "where": LazyFunction("regard.tasks.translation.search:where_view"),
    },
    auto=LazyFunction("regard.tasks.translation.auto:auto"),
    fine_tune=LazyFunction("regard.tasks.translation.fine_tuning:fine_tune"),
    takes_model=True,
    trace=LazyFunction("regard.tasks.translation.trace:trace_translator"),
    untrained=LazyFunction("regard.tasks.translation.trace:untrained"),
    store=LazyFunction("regard.tasks.translation.exchange:store"),
    intervene=LazyFunction("regard.tasks.translation.interventions:intervene_in_translator"),
)
