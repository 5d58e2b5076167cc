"""Node classification: the classes of the nodes of a graph."""

from regard.tasks import LazyFunction, Task
from regard.tasks.node_classification.settings import GraphRecipe

TASK = Task(
    schema=GraphRecipe,
    train=LazyFunction("regard.tasks.node_classification.training:train"),
    load=LazyFunction("regard.tasks.node_classification.model:load"),
    build=LazyFunction("regard.tasks.node_classification.model:build"),
    report=LazyFunction("regard.tasks.node_classification.report:write_report"),
    views={
        "map": LazyFunction("regard.tasks.node_classification.views:edges_view"),
        "node": LazyFunction("regard.tasks.node_classification.views:node_view"),
        "embeddings": LazyFunction("regard.tasks.node_classification.views:classes_view"),
    },
    trace=LazyFunction("regard.tasks.node_classification.trace:trace_node"),
    store=LazyFunction("regard.tasks.node_classification.exchange:store"),
    intervene=LazyFunction("regard.tasks.node_classification.interventions:intervene_in_graph"),
)
