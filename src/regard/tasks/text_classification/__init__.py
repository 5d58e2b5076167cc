"""Text classification: a label for each text, from a pre-trained or a fresh network."""

from regard.tasks import LazyFunction, Task
from regard.tasks.text_classification.settings import TextClassificationRecipe

TASK = Task(
    schema=TextClassificationRecipe,
    train=LazyFunction("regard.tasks.text_classification.training:train"),
    load=LazyFunction("regard.tasks.text_classification.model:load"),
    build=LazyFunction("regard.tasks.text_classification.model:build"),
    report=LazyFunction("regard.tasks.text_classification.report:write_report"),
    fine_tune=LazyFunction("regard.tasks.text_classification.training:fine_tune"),
    views={
        "map": LazyFunction("regard.tasks.text_classification.views:map_view"),
        "heads": LazyFunction("regard.tasks.text_classification.views:heads_view"),
        "word": LazyFunction("regard.tasks.text_classification.views:word_view"),
        "arcs": LazyFunction("regard.tasks.text_classification.views:arcs_view"),
    },
    intervene=LazyFunction("regard.tasks.language_modelling.interventions:intervene_in_classifier"),
    trace=LazyFunction("regard.tasks.language_modelling.trace:trace_classifier"),
)
