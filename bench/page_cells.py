"""Cells of the page's arithmetic panel, compared with the trace: every number must be equal."""

from __future__ import annotations

from random import Random
from typing import Any

NAMES = ("Q", "K", "V", "Z", "QK^T", "scores", "weights")

# Goes from cell to cell with the boxes of the panel; returns the numbers that each cell shows.
READ_CELLS = """async (cells) => {
  const panel = document.querySelector('[data-panel="arithmetic"]');
  const box = (name) => panel.querySelector(`[data-choice=${name}]`);
  const set = (name, value) => {
    if (box(name).value === `${value}`) return;
    box(name).value = `${value}`;
    box(name).dispatchEvent(new Event("change"));
  };
  const drawn = async (cell) => {
    for (let turn = 0; turn < 4000; turn += 1) {
      if (panel.querySelector(".arithmetic-steps")?.dataset.cell?.startsWith(cell)) return;
      await new Promise((done) => setTimeout(done, 5));
    }
    throw new Error(`${cell} was not drawn`);
  };
  const numbers = (kind) => [...panel.querySelectorAll(`td[data-kind="${kind}"]`)]
    .map((each) => Number(each.dataset.value));
  const result = (name) => Number(panel.querySelector(`[data-result="${name}"]`)?.dataset.value);
  const found = [];
  for (const [part, layer, head, row, column] of cells) {
    set("part", part);
    await drawn(`${part}.`);
    set("layer", layer);
    await drawn(`${part}.${layer}.`);
    set("head", head);
    await drawn(`${part}.${layer}.${head}.`);
    set("row", row);
    set("column", column);
    await drawn([part, layer, head, row, column].join("."));
    found.push({
      query: numbers("query"), key: numbers("key"), value: numbers("value"),
      context: numbers("context"), scores: numbers("row-score"), weights: numbers("row-weight"),
      product: result("product"), score: result("score"), weight: result("weight"),
    });
  }
  return found;
}"""


def cells_of(trace: Any, *, count: int, seed: int = 5) -> list[list[Any]]:
    """Return places of cells, drawn from all heads of all parts: part, layer, head, row, column."""
    random, places = Random(seed), []
    weights = [array for array in trace.inside if array.name.endswith(".weights")]
    for _ in range(count):
        array = random.choice(weights)
        part, layer, _ = array.name.split(".")
        places.append([part, int(layer), *(random.randrange(size) for size in array.values.shape)])
    return sorted(places)


def different(trace: Any, place: list[Any], cell: dict[str, Any]) -> list[str]:
    """Return which numbers of a cell of the page are not those of the trace."""
    part, layer, head, row, column = place
    of = {name: trace[f"{part}.{layer}.{name}"][head].tolist() for name in NAMES}
    expected = {
        "query": of["Q"][row],
        "key": of["K"][column],
        "product": of["QK^T"][row][column],
        "score": of["scores"][row][column],
        "scores": of["scores"][row],
        "weights": of["weights"][row],
        "weight": of["weights"][row][column],
        "value": of["V"][column],
        "context": of["Z"][row],
    }
    return [name for name, value in expected.items() if cell[name] != value]
