// The notation of the equations, and the sliders of the figures, on every page of the guide.
(() => {
  const KEY = "regard-notation";

  function remembered() {
    try { return localStorage.getItem(KEY); } catch { return null; }
  }

  function write(name) {
    for (const each of document.querySelectorAll(".in-notation")) {
      each.hidden = each.dataset.notation !== name;
    }
    for (const choice of document.querySelectorAll(".notation-choice")) choice.value = name;
    try { localStorage.setItem(KEY, name); } catch { /* a page without storage forgets it */ }
  }

  function startNotation() {
    const choices = [...document.querySelectorAll(".notation-choice")];
    if (!choices.length) return;
    const known = [...choices[0].options].map((option) => option.value);
    for (const choice of choices) choice.addEventListener("change", () => write(choice.value));
    const before = remembered();
    if (before && known.includes(before)) write(before);
  }

  // A figure has one frame for each place of each slider, or a server that draws any of them.
  function startFigure(figure) {
    const drawing = figure.querySelector(".lecture-drawing");
    const inputs = [...figure.querySelectorAll("input[type=range]")];
    const problem = figure.querySelector(".lecture-problem");
    const command = figure.querySelector(".lecture-command");
    let latest = 0;

    const value = (input) => input.dataset.values.split(" ")[Number(input.value)];
    const numbers = () => Object.fromEntries(inputs.map((input) => [input.name, value(input)]));

    function label() {
      for (const input of inputs) {
        const text = value(input);
        input.parentElement.querySelector("output").textContent = text;
        input.setAttribute("aria-valuetext", text);
      }
    }

    async function ask() {
      const mine = (latest += 1);
      const wanted = new URLSearchParams({ ...JSON.parse(figure.dataset.numbers), ...numbers() });
      const sentence = document.querySelector("#sentence");
      if (sentence) wanted.set("sentence", sentence.value);
      let answer;
      try {
        const response = await fetch(`${figure.dataset.live}?${wanted}`);
        answer = await response.json();
      } catch {
        answer = { problem: "The program that draws this page has ended: start regard lecture again." };
      }
      if (mine !== latest) return;
      problem.textContent = answer.problem ?? "";
      problem.hidden = !answer.problem;
      if (answer.svg) drawing.innerHTML = answer.svg;
      if (answer.command) command.textContent = answer.command;
    }

    function frame(moved) {
      for (const input of inputs) if (input !== moved) input.value = input.defaultValue;
      label();
      const wanted = `${moved.name}=${value(moved)}`;
      const frames = [...figure.querySelectorAll("template")];
      const found = frames.find((each) => each.dataset.frame === wanted) ?? frames[0];
      drawing.replaceChildren(found.content.cloneNode(true));
      command.textContent = found.dataset.command;
    }

    for (const input of inputs) {
      input.addEventListener("input", () => {
        label();
        if (figure.dataset.live) ask(); else frame(input);
      });
    }
    figure.addEventListener("redraw", ask);
    label();
  }

  function start() {
    startNotation();
    for (const figure of document.querySelectorAll(".lecture-figure")) startFigure(figure);
    const form = document.querySelector("#sentence-form");
    form?.addEventListener("submit", (event) => {
      event.preventDefault();
      for (const figure of document.querySelectorAll(".lecture-figure.reads")) {
        figure.dispatchEvent(new Event("redraw"));
      }
    });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
