/* Wrong entries are told beside their controls (studio/requests/wrong_entries.py). */
"use strict";
window.dash_clientside = window.dash_clientside || {};
(function () {
  const USED = "input:not([type=hidden]), textarea, select, button, [role=combobox], [role=slider]";

  function clear(name, lines) {
    for (const line of document.querySelectorAll(".wrong")) {
      if (line.dataset.of !== name || lines[line.dataset.at] === line.textContent) continue; /* one that stays is not announced again */
      const used = document.querySelector(`[aria-describedby~="${CSS.escape(line.id)}"]`);
      if (used) {
        used.removeAttribute("aria-invalid");
        const others = used.getAttribute("aria-describedby").split(/\s+/).filter((id) => id !== line.id);
        if (others.length) used.setAttribute("aria-describedby", others.join(" "));
        else used.removeAttribute("aria-describedby");
      }
      line.remove();
    }
  }

  function tell(name, id, text) {
    const control = document.getElementById(id);
    if (!control) return false;
    const first = control.matches(USED) ? control : control.querySelector(USED) || control;
    const used = first.matches("[type=radio]") ? first.closest("[role=radiogroup]") || first : first; /* a choice is wrong as a whole */
    const line = document.createElement("p");
    line.className = "wrong";
    line.id = `${id.replace(/[^\w-]+/g, "-")}-wrong-line`;
    line.dataset.of = name;
    line.dataset.at = id;
    line.setAttribute("role", "alert");
    const place = control.closest(".field, .slot, .lab-entry") || control.parentElement;
    if ([...place.querySelectorAll(".wrong")].some((other) => other.textContent === text)) return true; /* told by another callback */
    for (let outer = place; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
    place.appendChild(line);
    used.setAttribute("aria-invalid", "true");
    used.setAttribute("aria-describedby", [used.getAttribute("aria-describedby"), line.id].filter(Boolean).join(" "));
    line.textContent = text; /* last: an alert is announced when its text comes */
    return true;
  }

  window.dash_clientside.retrompi_entries = {
    tell: function (lines, storeId) {
      const name = typeof storeId === "string" ? storeId.replace(/-entries$/, "") : JSON.stringify(storeId);
      clear(name, lines || {});
      for (const [id, text] of Object.entries(lines || {})) {
        if (!tell(name, id, text)) console.error(`no control ${id} to tell about: ${text}`);
      }
      return window.dash_clientside.no_update;
    },
  };
})();
