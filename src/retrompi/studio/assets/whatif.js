/* What if: a slider and its text entry update each other; values that differ from the model's are sent as overrides. While a slider is
   dragged nothing is asked about the value under the finger: the figure follows by finger.js, and the question is put when it rests. */
"use strict";
window.dash_clientside = window.dash_clientside || {};
(function () {
  const same = () => window.dash_clientside.no_update;

  /* The value of "128 KiB" in base units, as retrompi.base.units reads it; NaN for invalid texts. */
  function value(text, spellings) {
    const found = /^\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*$/.exec(text || "");
    if (!found) return NaN;
    const number = Number(found[1].replaceAll("_", ""));
    if (found[2] in spellings) return number * spellings[found[2]];
    return found[2] === "" && number === 0 ? 0 : NaN;
  }
  function nearest(numbers, wanted) {
    let best = 0;
    numbers.forEach((n, i) => { if (Math.abs(n - wanted) < Math.abs(numbers[best] - wanted)) best = i; });
    return best;
  }

  window.dash_clientside.retrompi_whatif = {
    together: function (position, text, told) {
      const by = window.dash_clientside.callback_context.triggered_id;
      const slot = by && told && told.slots[by.name];
      if (!slot || !slot.texts.length) return [same(), same()];
      if (by.type === "whatif-slide") {
        const wanted = slot.texts[Number(position)];
        return [same(), wanted === undefined || wanted === text ? same() : wanted];
      }
      const at = slot.texts.indexOf(text);
      const number = value(text, told.units[slot.unit]);
      const there = at >= 0 ? at : Number.isNaN(number) ? Number(position) : nearest(slot.numbers, number);
      return [there === Number(position) ? same() : there, same()];
    },
    gather: function (texts, words, told) {
      if (!told) return [same(), same(), same()];
      page = told;
      const [texted, chosen] = window.dash_clientside.callback_context.inputs_list;
      const sets = {};
      texted.forEach((input, i) => {
        const slot = told.slots[input.id.name];
        const text = (texts[i] || "").trim();
        if (slot && text && text !== slot.base) sets[input.id.name] = text;
      });
      chosen.forEach((input, i) => {
        if (words[i] && words[i] !== told.choices[input.id.name]) sets[input.id.name] = words[i];
      });
      document.querySelectorAll(".slot").forEach((slot) => {
        const name = slot.dataset.name;
        slot.classList.toggle("changed", name in sets);
        const slider = slot.querySelector("input[type=range]"); /* screen readers announce the value, not the step number */
        if (slider && told.slots[name]) slider.setAttribute("aria-valuetext", sets[name] || told.slots[name].base);
      });
      changed = sets;
      return [sets, { model: told.model, platform: told.platform, mode: told.mode, sets: sets }, ""];
    },
    find: function (words) {
      const wanted = (words || "").toLowerCase().split(/\s+/).filter(Boolean);
      document.querySelectorAll(".slot").forEach((slot) => { slot.hidden = !wanted.every((w) => slot.dataset.words.includes(w)); });
      if (wanted.length) document.querySelectorAll("#whatif-parameters details").forEach((d) => { d.open = d.querySelector(".slot:not([hidden])") !== null; });
      return same();
    },
    /* The page's figure, which is followed from; once nothing is under way Plotly's own is shown again. */
    shown: function (drawn, idle, what) {
      figure = drawn;
      series = what;
      if (idle && following && !held) rest();
    },
  };

  /* -- the figure follows the finger ------------------------------------------------------------------------------------------------ */

  const SLIDERS = ".slot input[type=range]", DWELL_MS = 80;
  const { _, fill } = window.retrompiWords;
  const finger = window.retrompiFinger;
  let page = null, changed = {}, figure = null, series = "bandwidth";
  let held = ""; /* the parameter whose slider is pressed */
  let following = ""; /* the parameter whose curves are drawn over the page's figure */
  let stops = { of: "", name: "", curves: new Map(), asked: false };

  const nameOf = (slider) => slider.closest(".slot").dataset.name;
  const sliderOf = (name) => document.querySelector(`.slot[data-name="${CSS.escape(name)}"] input[type=range]`);
  const places = (texts) => texts.map((_text, i) => i);

  /* Asks for curves of a slider that is touched, or about to be, the other parameters being as they are. */
  function ask(slider) {
    const name = nameOf(slider), slot = page && page.slots[name];
    if (!slot) return;
    const others = Object.fromEntries(Object.entries(changed).filter(([other]) => other !== name));
    const of = JSON.stringify([page.model, page.platform, page.mode, others, name]);
    if (of !== stops.of) stops = { of, name, curves: new Map(), asked: false };
    const known = places(slot.texts).filter((i) => stops.curves.has(slot.texts[i]));
    if (stops.asked || known.length === slot.texts.length) return;
    const mine = stops;
    mine.asked = true;
    const texts = finger.worth(places(slot.texts), known, Number(slider.value)).map((i) => slot.texts[i]);
    const body = JSON.stringify({ model: page.model, platform: page.platform, mode: page.mode, sets: others, name, texts });
    fetch("/whatif/stops", { method: "POST", headers: { "Content-Type": "application/json" }, body })
      .then((answer) => (answer.ok ? answer.json() : {}), () => ({})).then((curves) => {
        mine.asked = false;
        const found = Object.entries(curves);
        for (const [text, curve] of found) mine.curves.set(text, curve);
        if (mine !== stops || !found.length) return;
        const now = sliderOf(name);
        if (now && [held, following].includes(name)) draw(now);
        if (now && (held === name || document.activeElement === now)) ask(now); /* the others, while the finger is there */
      });
  }

  function draw(slider) {
    const name = nameOf(slider), slot = page && page.slots[name], place = Number(slider.value), wanted = slot && slot.texts[place];
    if (!wanted) return;
    if (held === name) { /* the entry beside the slider, which is not told before the finger rests */
      slider.closest(".slot").querySelector(".typed input").value = wanted;
      slider.setAttribute("aria-valuetext", wanted);
    }
    const box = document.getElementById("whatif-figure-sketch");
    if (!box || !figure || stops.name !== name) return;
    const near = finger.nearest(places(slot.texts).filter((i) => stops.curves.has(slot.texts[i])), place);
    if (near === undefined) return;
    follow(name);
    float(box, slider);
    window.retrompiSketch.draw(box, followed(slot, name, wanted, slot.texts[near]));
  }
  /* The page's figure with the curve of a stop instead of the changed one; its axes stay where they are while the finger moves. */
  function followed(slot, name, wanted, text) {
    const at = series === "time" ? 1 : 2, exact = text === wanted;
    const points = (curve) => curve.rows.filter((row) => at === 1 || row[at] > 0);
    const before = figure.data.filter((trace) => trace.meta !== "changed");
    const asItWas = before.map((trace) => (trace.mode === "lines+markers" ? { ...trace, line: { ...trace.line, dash: "dot", width: 2 } } : trace));
    const curve = stops.curves.get(text), rows = points(curve), label = name.split(".").pop();
    const said = exact ? _("{name} {value}, simulated") : _("sketch: {name} {value}, the nearest simulated to {wanted}");
    const title = fill(said, { name: label, value: text, wanted }) + (curve.ended ? fill(_(" (until its end: {outcome})"), { outcome: curve.ended }) : "");
    const drawn = { x: rows.map((row) => row[0]), y: rows.map((row) => row[at]), mode: "lines+markers", name: title, opacity: exact ? 1 : 0.6,
      line: { color: CHANGED, width: exact ? 3.5 : 2, dash: exact ? "solid" : "dash" }, marker: { symbol: exact ? "square" : "square-open", size: 7, color: CHANGED } };
    const values = [...before.flatMap((trace) => trace.y || []), ...[...stops.curves.values()].flatMap((one) => points(one).map((row) => row[at]))].filter((y) => y > 0);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const range = figure.layout.yaxis.type === "log" ? [Math.log10(low) - 0.05, Math.log10(high) + 0.05] : [0, high * 1.05];
    return { data: [...asItWas, drawn], layout: { ...figure.layout, yaxis: { ...figure.layout.yaxis, range } } };
  }
  const CHANGED = "#D55E00"; /* the colour of what is changed, in studio/curves/drawing.py */

  /* On a phone the figure is above, out of view: while a slider is pressed its sketch lies over the half of the screen without the finger. */
  function float(box, slider) {
    const { top, bottom } = box.parentElement.getBoundingClientRect();
    box.classList.toggle("floats", held !== "" && (bottom < innerHeight / 4 || top > innerHeight * 0.75));
    box.classList.toggle("below", slider.getBoundingClientRect().top < innerHeight / 2);
  }

  function follow(name) {
    following = name;
    const said = document.getElementById("whatif-unchanged");
    if (said) said.hidden = name !== "";
  }

  /* What was simulated last is drawn at once, and Plotly's drawing of it shown as soon as there is one. */
  function rest() {
    const box = document.getElementById("whatif-figure-sketch"), plot = document.querySelector("#whatif-figure .js-plotly-plot");
    follow("");
    if (!box) return;
    window.retrompiSketch.draw(box, figure);
    const clear = () => {
      if (following) return;
      window.retrompiSketch.clear(box);
      box.classList.remove("floats");
    };
    if (plot && plot.once) plot.once("plotly_afterplot", clear);
    setTimeout(clear, 1000);
  }

  finger.follow(SLIDERS, draw, (slider) => {
    held = nameOf(slider);
    ask(slider);
  }, (slider) => {
    const name = held;
    held = "";
    if (following && page.slots[name].texts[Number(slider.value)] === (changed[name] || page.slots[name].base)) rest(); /* nothing is asked */
  });
  let dwells = 0;
  document.addEventListener("pointerover", (event) => { /* a mouse that stays: what it will want first is there when it presses */
    clearTimeout(dwells);
    const slider = event.target.closest(SLIDERS);
    if (slider && !held) dwells = setTimeout(() => ask(slider), DWELL_MS);
  });
  document.addEventListener("focusin", (event) => { if (event.target.matches(SLIDERS)) ask(event.target); });
})();
