/* Dash's dropdowns are announced by their value alone, its radio buttons, sliders and uploads not at all: screen readers need the label
   of the field as well. */
"use strict";
(function () {
  const { _, lazy } = window.retrompiWords;
  const STEPS = [lazy("Decrease value"), lazy("Increase value")]; /* as Dash calls the buttons of a number */
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
  /* Dash writes radio buttons and checkboxes as options of a list, with the real control inside: then it would be announced twice. */
  function plainly() {
    /* Since Dash 4.4 a hidden entry beside a dropdown's button takes the focus and hands it on, which screen readers forbid; Dash gives the
       entry its tab stop back whenever the button is left. The button itself is the stop, as before Dash 4.4. */
    for (const hidden of document.querySelectorAll(".dash-dropdown-focus-target:not([tabindex='-1'])")) hidden.tabIndex = -1;
    for (const button of document.querySelectorAll("button.dash-dropdown[tabindex='-1']")) button.tabIndex = 0;
    for (const option of document.querySelectorAll("label.dash-options-list-option[role], label.dash-options-list-option[aria-selected]")) {
      if (!option.querySelector("input[type=radio], input[type=checkbox]") || option.closest(".dash-dropdown-content")) continue;
      option.removeAttribute("role");
      option.removeAttribute("aria-selected");
      const group = option.closest("[role=listbox]");
      if (!group) continue;
      group.setAttribute("role", option.querySelector("input[type=radio]") ? "radiogroup" : "group");
      const legend = (group.closest("fieldset") || document.createElement("i")).querySelector("legend");
      const label = group.closest(".field, label, .slot");
      const said = legend ? legend.textContent : label && label.querySelector(".name, label") ? label.querySelector(".name, label").textContent : "";
      if (!group.hasAttribute("aria-labelledby")) group.setAttribute("aria-label", said || _("choices"));
    }
  }
  function name() {
    plainly();
    for (const step of document.querySelectorAll("button.dash-input-stepper")) {
      if (STEPS.includes(step.ariaLabel)) step.ariaLabel = _(step.ariaLabel);
    }
    for (const label of document.querySelectorAll(".field > label:not([data-named])")) field(label);
    for (const part of document.querySelectorAll(".field :is([role=slider], input:not([type=radio], [type=checkbox]))")) {
      const label = part.closest(".field").querySelector(":scope > label[data-named]");
      if (label && unnamed(part)) part.setAttribute("aria-labelledby", label.id);
    }
    for (const file of document.querySelectorAll("input[type=file]")) {
      if (unnamed(file)) file.setAttribute("aria-label", (file.parentElement.textContent || _("upload a file")).trim());
    }
  }

  let due = false;
  new MutationObserver(() => {
    if (!due) requestAnimationFrame(() => { due = false; name(); });
    due = true;
  }).observe(document.documentElement, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-selected", "role", "tabindex"] });
})();
