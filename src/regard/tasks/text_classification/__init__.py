"""Text classification: a label for each text, from a pre-trained or a fresh network."""

from regard.tasks import Task, part
from regard.tasks.text_classification.settings import TextClassificationRecipe

TASK = Task(
    schema=TextClassificationRecipe,
    train=part("regard.tasks.text_classification.training:train"),
    load=part("regard.tasks.text_classification.model:load"),
    build=part("regard.tasks.text_classification.model:build"),
    report=part("regard.tasks.text_classification.report:write_report"),
    views={
        "map": part("regard.tasks.text_classification.views:confusion_view"),
    },
)
