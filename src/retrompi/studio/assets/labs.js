/* Labs: a slider sets the entry above it; a new step begins at its top. */
"use strict";
window.dash_clientside = window.dash_clientside || {};
window.dash_clientside.retrompi_labs = {
  slide: function (position, marks) {
    const same = window.dash_clientside.no_update;
    const base = marks && marks["0"];
    const found = /^\s*([0-9.]+)(.*)$/.exec((base && base.label) || base || "");
    if (!found) return same;
    if (Number(position) === 0) return found[0];
    const value = Number(found[1]) * Math.pow(2, Number(position));
    const whole = /^\s*(B|)$/.test(found[2]);
    return (whole ? Math.max(1, Math.round(value)) : Number(value.toPrecision(4))) + found[2];
  },
  /* What is typed is saved when nothing was typed for a moment. */
  typed: function (value) {
    const id = window.dash_clientside.callback_context.triggered_id;
    if (!id) return window.dash_clientside.no_update;
    const store = { ...id, type: id.type === "labs-file" ? "labs-file-typed" : "labs-typed" };
    const key = JSON.stringify(store);
    const waiting = (window.retrompiTyped = window.retrompiTyped || {});
    window.clearTimeout(waiting[key]);
    waiting[key] = window.setTimeout(() => {
      try {
        window.dash_clientside.set_props(store, { data: value ?? "" });
      } catch (gone) { /* the student has gone to another step, which saved it */ }
    }, 600);
    return window.dash_clientside.no_update;
  },
  /* A new step begins at its title; where the same step was drawn again and took the focus along, it goes on from there. */
  top: function () {
    const came = window.dash_clientside.callback_context.triggered.map((t) => t.prop_id);
    window.retrompiTurned ||= came.includes("labs-step.data");
    if (!came.includes("labs-shown.children")) return window.dash_clientside.no_update;
    const turned = window.retrompiTurned;
    window.retrompiTurned = false;
    requestAnimationFrame(() => requestAnimationFrame(() => { /* it is drawn by then */
      const title = document.getElementById("labs-step-title");
      if (!title || !(turned || document.activeElement === document.body)) return;
      if (turned) title.scrollIntoView({ block: "start" });
      title.focus({ preventScroll: true });
    }));
    return window.dash_clientside.no_update;
  },
};
