/* Dash's dropdowns are announced by their value alone, its radio buttons, sliders and uploads not at all: screen readers need the label
   of the field as well. */
"use strict";
(function () {
  let made = 0;
  const unnamed = (e) => !(e.labels && e.labels.length) && !e.ariaLabel && !e.getAttribute("aria-labelledby") && e.ariaHidden !== "true";

  function field(label) {
    if (!label.id) label.id = `label-${++made}`;
    const target = label.htmlFor ? document.getElementById(label.htmlFor) : null;
    if (label.htmlFor && !target) return;
    label.dataset.named = "1";
    if (target && target.matches("button.dash-dropdown")) {
      target.setAttribute("aria-labelledby", `${label.id} ${target.getAttribute("aria-labelledby") || ""}`.trim());
    } else if (target && label.control === null) {
      if (!target.hasAttribute("role")) target.setAttribute("role", "group");
      target.setAttribute("aria-labelledby", label.id);
    }
  }
  function name() {
    for (const label of document.querySelectorAll(".field > label:not([data-named])")) field(label);
    for (const part of document.querySelectorAll(".field :is([role=slider], input:not([type=radio], [type=checkbox]))")) {
      const label = part.closest(".field").querySelector(":scope > label[data-named]");
      if (label && unnamed(part)) part.setAttribute("aria-labelledby", label.id);
    }
    for (const file of document.querySelectorAll("input[type=file]")) {
      if (unnamed(file)) file.setAttribute("aria-label", (file.parentElement.textContent || "upload a file").trim());
    }
  }

  let due = false;
  new MutationObserver(() => {
    if (!due) requestAnimationFrame(() => { due = false; name(); });
    due = true;
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
