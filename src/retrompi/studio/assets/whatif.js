/* What if: a slider and its text entry update each other; values that differ from the model's are sent as overrides. */
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
      return [sets, { model: told.model, platform: told.platform, mode: told.mode, sets: sets }, ""];
    },
    find: function (words) {
      const wanted = (words || "").toLowerCase().split(/\s+/).filter(Boolean);
      document.querySelectorAll(".slot").forEach((slot) => { slot.hidden = !wanted.every((w) => slot.dataset.words.includes(w)); });
      if (wanted.length) document.querySelectorAll("#whatif-parameters details").forEach((d) => { d.open = d.querySelector(".slot:not([hidden])") !== null; });
      return same();
    },
  };
})();
