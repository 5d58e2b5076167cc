"""Node classification: the classes of the nodes of a graph."""

from regard.tasks import Task, part
from regard.tasks.node_classification.settings import GraphRecipe

TASK = Task(
    schema=GraphRecipe,
    train=part("regard.tasks.node_classification.training:train"),
    load=part("regard.tasks.node_classification.model:load"),
    build=part("regard.tasks.node_classification.model:build"),
    report=part("regard.tasks.node_classification.report:write_report"),
    views={
        "map": part("regard.tasks.node_classification.views:edges_view"),
        "node": part("regard.tasks.node_classification.views:node_view"),
        "embeddings": part("regard.tasks.node_classification.views:classes_view"),
    },
    trace=part("regard.tasks.node_classification.trace:trace_node"),
)
