"""Translation: any text-to-text model, recurrent or Transformer."""

from regard.tasks import Task, part
from regard.tasks.translation.settings import TranslationRecipe

TASK = Task(
    schema=TranslationRecipe,
    train=part("regard.tasks.translation.training:train"),
    load=part("regard.tasks.translation.model:load"),
    build=part("regard.tasks.translation.model:build"),
    report=part("regard.tasks.translation.report:write_report"),
    views={
        "map": part("regard.tasks.translation.views:sentence_view"),
        "heads": part("regard.tasks.translation.views:heads_view"),
        "word": part("regard.tasks.translation.views:word_view"),
        "arcs": part("regard.tasks.translation.views:arcs_view"),
    },
    takes_model=True,
    trace=part("regard.tasks.translation.trace:trace_translator"),
    untrained=part("regard.tasks.translation.trace:untrained"),
)
