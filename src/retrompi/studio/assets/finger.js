/* A figure that follows the finger on a slider: drawn by render/document/sketch.js, once a frame, from curves that were simulated before. Nothing
   between them is drawn: where the finger's own curve is not known yet, the nearest one that is stands for it, and says so. */
"use strict";
(function () {
  window.retrompiFinger = {
    /* Draws once a frame, however many events a finger makes; `draw` is given the slider. Dash, which takes longer than a frame over each
       event, is told where the finger has come to when it lifts. */
    follow: function (sliders, draw, press, lift) {
      let due = null, pressed = null;
      const of = (event) => (event.target.matches("input[type=range]") && event.target.closest(sliders) ? event.target : null);
      document.addEventListener("input", (event) => {
        const slider = of(event);
        if (!slider) return;
        if (slider === pressed) event.stopPropagation();
        if (due === null) requestAnimationFrame(() => { const moved = due; due = null; draw(moved); });
        due = slider;
      }, true);
      document.addEventListener("pointerdown", (event) => {
        pressed = of(event);
        if (pressed && press) press(pressed);
      }, true);
      for (const ends of ["pointerup", "pointercancel"]) {
        document.addEventListener(ends, () => {
          const slider = pressed;
          pressed = null;
          if (slider && lift) lift(slider);
          if (slider) slider.dispatchEvent(new Event("input", { bubbles: true }));
        }, true);
      }
    },
    /* Of the places that are known the nearest to one; undefined without any. */
    nearest: function (known, place) {
      return known.reduce((best, one) => (best === undefined || Math.abs(one - place) < Math.abs(best - place) ? one : best), undefined);
    },
    /* The other places of a slider in the order in which they are worth knowing: the finger's own, then always the one farthest from all
       that are known, so that the nearest is near wherever the finger goes next. */
    worth: function (places, known, at) {
      const have = [...known], rest = places.filter((one) => !have.includes(one)), order = [];
      const far = (one) => (have.length ? Math.min(...have.map((other) => Math.abs(other - one))) : -Math.abs(one - at));
      while (rest.length) {
        const next = rest.includes(at) ? at : rest.reduce((best, one) => (far(one) > far(best) ? one : best));
        rest.splice(rest.indexOf(next), 1);
        have.push(next);
        order.push(next);
      }
      return order;
    },
  };
})();
