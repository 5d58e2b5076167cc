"use strict";
// Pointing at a target word, or moving to it with the keyboard, lights up what it attends to.
for (const map of document.querySelectorAll(".hover-map")) {
  const weights = JSON.parse(map.dataset.weights);
  const sources = [...map.querySelectorAll(".source-word")];
  const targets = [...map.querySelectorAll("[data-target]")];
  const words = [...map.querySelectorAll("button[data-target]")];
  const reading = map.querySelector(".reading");
  const hint = reading.textContent;

  const show = (target) => {
    const row = weights[target];
    const most = Math.max(...row);
    map.classList.add("looking");
    sources.forEach((word, column) => {
      word.style.setProperty("--w", most > 0 ? row[column] / most : 0);
      word.classList.toggle("most", row[column] === most && most > 0);
    });
    for (const element of targets) {
      element.classList.toggle("chosen", Number(element.dataset.target) === target);
    }
    const strongest = row.map((weight, column) => [weight, column])
      .filter(([weight]) => weight >= 0.01)
      .sort((one, other) => other[0] - one[0])
      .slice(0, 3)
      .map(([weight, column]) => `${sources[column].textContent} ${Math.round(100 * weight)}\u00a0%`);
    reading.textContent = `${words[target].textContent} ← ${strongest.join(", ") || "nothing"}`;
  };

  const clear = () => {
    map.classList.remove("looking");
    sources.forEach((word) => { word.style.removeProperty("--w"); word.classList.remove("most"); });
    targets.forEach((element) => element.classList.remove("chosen"));
    reading.textContent = hint;
  };

  const look = (event) => {
    const element = event.target.closest("[data-target]");
    if (element) show(Number(element.dataset.target));
  };
  // When the pointer leaves, the word that the keyboard is on comes back.
  const leave = () => {
    const focused = document.activeElement;
    if (words.includes(focused)) show(Number(focused.dataset.target));
    else clear();
  };
  map.addEventListener("pointerover", look);
  map.addEventListener("focusin", look);
  map.addEventListener("pointerleave", leave);
  map.addEventListener("focusout", clear);
}

// A film: the slider paints the heat map of another time.
for (const film of document.querySelectorAll(".film-strip")) {
  const frames = JSON.parse(film.dataset.frames);
  const cells = [...film.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td")]);
  film.querySelector("input").addEventListener("input", ({ target }) => {
    const { name, weights } = frames[target.value];
    film.querySelector("output").textContent = name;
    weights.forEach((row, at) => row.forEach((weight, column) => {
      cells[at][column].style.setProperty("--w", weight);
      cells[at][column].title = weight;
    }));
  });
}

// What is wider than the page can be scrolled with the keyboard as well, while it is wider.
const scrolled = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
for (const wide of document.querySelectorAll(".table, .grid")) scrolled.observe(wide);
