"""What it costs that a model can be touched: decoding without a probe, beside an older version.

    git archive aa2c213 src | tar x -C /tmp/before
    PYTHONPATH=/tmp/before/src regard demo --out /tmp/before/demo
    python bench/touch.py --demo /tmp/before/demo --before /tmp/before/src

Both versions decode the same sentences with the demo's models, greedily and with a beam, in turns
of a fraction of a second each and in an order that changes; `decode_ratio_unused` is the median of
the ratios (before / now, so that more is faster) of the processor time of neighbouring turns, over
all four settings. The processor time does not count what other programs do meanwhile.

`cells_equal_of_200` counts the cells of heat maps, drawn from all heads of the Transformer, whose
arithmetic on the page (in Chromium) has in every number what `regard trace --json` has. `--cells`
measures that alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlencode

from page_cells import READ_CELLS, cells_of, different
from result import read_result, write_result

SENTENCE = "cats do not like dogs"

ROUND = """
import sys, time, torch
torch.set_num_threads(1)
import regard
from regard.tasks.translation.data import read_test
model = regard.load(sys.argv[1])
texts = [pair.source for pair in read_test(model.recipe.data)[:24]]
model.translate(texts, attention=False, beam=int(sys.argv[2]))
print("ready", flush=True)
for _ in sys.stdin:
    begin = time.process_time()
    model.translate(texts, attention=False, beam=int(sys.argv[2]))
    print(time.process_time() - begin, flush=True)
"""


def started(source: Path, run: Path, beam: int) -> subprocess.Popen[str]:
    """Start a process that decodes whenever it is asked to."""
    process = subprocess.Popen(
        [sys.executable, "-c", ROUND, str(run), str(beam)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def seconds(process: subprocess.Popen[str]) -> float:
    """Let a process decode once; return its processor time."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("again\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def cells_equal(run: Path, *, count: int = 200) -> int:
    """Return how many cells of the page have in every number what the trace has."""
    from playwright.sync_api import sync_playwright

    import regard
    from regard.base.special_tokens import END
    from regard.serving.app import create_app
    from regard.serving.models import load_models
    from regard.serving.server import listening_socket, make_server

    trace = regard.trace(run, SENTENCE)  # what `regard trace --json` writes
    ids = regard.load(run).target_tokenizer.encode(trace.output)
    listening = listening_socket("127.0.0.1", 0)
    server = make_server(create_app(load_models([run], engine="torch")))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    state = {"q": SENTENCE, "open": "arithmetic", "force": ",".join(map(str, [*ids, END]))}
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"http://127.0.0.1:{listening.getsockname()[1]}/#{urlencode(state)}")
        page.locator("[data-cell]").wait_for()
        places = cells_of(trace, count=count)
        shown = page.evaluate(READ_CELLS, places)
        browser.close()
    server.should_exit = True
    thread.join(timeout=30)
    return sum(not different(trace, *each) for each in zip(places, shown, strict=True))


def main() -> None:
    """Measure and write bench/results/touch.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, required=True, help="the folder of regard demo")
    parser.add_argument("--before", type=Path, help="src of the older version")
    parser.add_argument("--cells", action="store_true", help="keep the speed that is on record")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    cells = {"cells_equal_of_200": cells_equal(options.demo / "transformer")}
    print(cells)
    command = "python bench/touch.py --demo /tmp/before/demo --before /tmp/before/src"
    if options.cells or options.before is None:
        record = read_result("touch")
        details = record.get("details")
        figures = {**record.get("figures", {}), **cells}
        print(write_result("touch", figures, command=command, details=details))
        return
    now = Path(__file__).parents[1] / "src"
    found: dict[str, list[float]] = {}
    for name in ("attention", "transformer"):
        for beam in (1, 5):
            pair = [started(each, options.demo / name, beam) for each in (options.before, now)]
            ratios = []
            for number in range(options.rounds):
                order = (0, 1) if number % 2 else (1, 0)
                times = {which: seconds(pair[which]) for which in order}
                ratios.append(times[0] / times[1])
            found[f"{name}_beam{beam}"] = ratios
            for process in pair:
                process.kill()
            print(name, beam, round(statistics.median(ratios), 4))
    every = [ratio for ratios in found.values() for ratio in ratios]
    figures = {**cells, "decode_ratio_unused": round(statistics.median(every), 4)}
    figures |= {key: round(statistics.median(ratios), 4) for key, ratios in found.items()}
    print(write_result("touch", figures, command=command, details={"rounds": options.rounds}))


if __name__ == "__main__":
    main()
