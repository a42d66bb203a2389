/* The studio's script: page state in the address, keyboard shortcuts, copying. */
"use strict";
window.dash_clientside = window.dash_clientside || {};
(function () {
  const nothing = () => window.dash_clientside.no_update;

  /* By the rules of studio/requests/state.py: default values are omitted, unless the control follows one that is not at its default. */
  function one(value) {
    if (value === null || value === undefined) return "";
    if (value === true) return "1";
    if (value === false) return "0";
    return String(value);
  }
  function same(a, b) {
    if (Array.isArray(a) || Array.isArray(b)) return JSON.stringify(a || []) === JSON.stringify(b || []);
    return one(a) === one(b);
  }
  function written(control, value, moved) {
    if (control.named) {
      return Object.entries(value || {}).filter(([, v]) => v !== null && v !== undefined && v !== "").map(([n, v]) => `${n}=${one(v)}`);
    }
    if (same(value, control.default) && !moved.includes(control.follows)) return [];
    if (Array.isArray(control.default)) return value && value.length ? value.map(one) : [""];
    return [one(value)];
  }

  /* The runtime at hand and its platform go along to the other pages: a page at its defaults has nothing to hand on, one without a
     runtime leaves the links as they are. */
  let known = {};
  function carry(controls, values) {
    const at = (key) => controls.findIndex((c) => c.key === key);
    const model = at("model"), platform = at("platform");
    const set = window.dash_clientside.set_props;
    if (model < 0 || !set) return;
    const before = known;
    known = {};
    const other = (i) => i >= 0 && !same(values[i], controls[i].default);
    const on = platform < 0 || values[platform] === "own" ? "" : one(values[platform]);
    if (other(model) || (other(platform) && on)) {
      known.model = one([].concat(values[model] || [])[0]);
      known.platform = on || (known.model === before.model ? before.platform : ""); /* a card of a runtime is of no platform */
    }
    const links = JSON.parse(document.getElementById("studio").dataset.carried);
    for (const [id, { path, takes }] of Object.entries(links)) {
      const given = takes.filter((key) => known[key]).map((key) => `${key}=${encodeURIComponent(known[key])}`);
      set(id, { href: path + (given.length ? `?${given.join("&")}` : "") });
    }
  }

  window.dash_clientside.retrompi = {
    keep: function (...values) {
      const controls = values.pop();
      const parts = [];
      const moved = controls.filter((control, i) => !same(values[i], control.default)).map((control) => control.key);
      controls.forEach((control, i) => {
        for (const text of written(control, values[i], moved)) parts.push(`${encodeURIComponent(control.key)}=${encodeURIComponent(text)}`);
      });
      carry(controls, values);
      const search = parts.length ? `?${parts.join("&")}` : "";
      if (search !== location.search) history.replaceState(history.state, "", location.pathname + search + location.hash);
      return search;
    },
    /* The font size of the page in pixels, to which figures are scaled. */
    look: function () {
      return parseFloat(getComputedStyle(document.documentElement).fontSize);
    },
    /* Until Plotly has come a figure is sketched over its place. */
    sketch: function (figure, name) {
      /* Dash writes an id of several parts as JSON. */
      const [id, over] = typeof name === "string" ? [name, `${name}-sketch`] : [name.type, `${name.type}-sketch`].map((type) => JSON.stringify({ own: name.own, type }));
      const box = document.getElementById(over);
      if (!box || !figure || !window.retrompiSketch || !(figure.data || []).length) return nothing();
      /* On a phone an entry has a line of the legend, or several: the figure is taller by them. */
      const entries = figure.data.filter((t) => t.showlegend !== false && t.name);
      const lines = entries.reduce((sum, t) => sum + String(t.name).split("<br>").length, 0);
      box.parentElement.style.setProperty("--legend", figure.layout && figure.layout.showlegend === false ? 0 : lines);
      const there = () => { /* the graph's element comes with its script */
        const drawn = document.getElementById(id);
        return drawn && drawn.querySelector(".main-svg .trace, .main-svg .hm, .main-svg .point");
      };
      if (!window.Plotly || !there()) {
        window.retrompiSketch.draw(box, figure);
        const wait = () => { if (there()) window.retrompiSketch.clear(box); else if (box.isConnected && box.figure) setTimeout(wait, 120); };
        wait();
      }
      return nothing();
    },
    arrive: function (title, path) {
      const early = document.getElementById("first"); /* what stood there until the page came */
      if (early) early.remove();
      document.title = title && path !== "/" ? `${title} · retrompi studio` : "retrompi studio";
      for (const a of document.querySelectorAll(".nav-link")) {
        if (a.pathname === path) {
          a.setAttribute("aria-current", "page");
          const row = a.closest("ul"); /* on a phone the row of pages is wider than the screen */
          row.scrollLeft = a.offsetLeft - (row.clientWidth - a.offsetWidth) / 2;
        }
        else a.removeAttribute("aria-current");
      }
      pressed();
      return nothing();
    },
  };

  function tell(button, text) {
    button.dataset.says ||= button.textContent; /* kept if a second click comes while the first message is still shown */
    button.textContent = text;
    setTimeout(() => { button.textContent = button.dataset.says; }, 1500);
  }
  async function copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
    } catch (error) { /* no clipboard outside a secure context */
      const area = document.createElement("textarea");
      area.value = text;
      document.body.appendChild(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    tell(button, window.retrompiWords._("Copied"));
  }
  function keys() {
    const dialog = document.getElementById("studio-keys");
    if (!dialog) return;
    if (dialog.open) dialog.close();
    else dialog.showModal();
  }

  /* The figure of the first answer moves into the page's own, as soon as there is one, until that is drawn. */
  const first = document.getElementById("first-data");
  if (first && document.getElementById("first-sketch") && window.retrompiSketch) {
    const figure = JSON.parse(first.textContent), path = location.pathname;
    const watch = new MutationObserver(() => {
      const box = document.querySelector("#main .drawn .sketch");
      if (!box && location.pathname === path) return;
      watch.disconnect();
      if (location.pathname !== path) return;
      window.dash_clientside.retrompi.sketch(figure, box.id.replace(/-sketch$/, ""));
    });
    watch.observe(document.documentElement, { childList: true, subtree: true });
  }

  function remember(name, value) {
    try {
      if (value === null) localStorage.removeItem(name);
      else localStorage.setItem(name, value);
    } catch (error) { /* a browser that keeps nothing: for this page only */ }
  }
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  /* The other of light and dark; back to what the system says when that is the same. */
  function turn() {
    const wanted = dark() ? "light" : "dark";
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    if (wanted === system) delete root.dataset.theme;
    else root.dataset.theme = wanted;
    remember("retrompi-theme", wanted === system ? null : wanted);
  }
  /* Figures are made for the letters of the page, so that it is loaded again; its state is in its address. */
  function project() {
    remember("retrompi-projector", root.dataset.projector ? null : "1");
    location.reload();
  }
  function pressed() {
    const [theme, projector] = ["studio-theme", "studio-projector"].map((id) => document.getElementById(id));
    if (theme) theme.setAttribute("aria-pressed", String(dark()));
    if (projector) projector.setAttribute("aria-pressed", String(Boolean(root.dataset.projector)));
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", pressed);

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.id === "studio-theme") { turn(); pressed(); }
    else if (button.id === "studio-projector") project();
    else if (button.id === "studio-help" || button.id === "studio-help-close") keys();
    else if (button.classList.contains("copy-link")) copy(location.href, button);
    else if (button.classList.contains("copy-text")) {
      const text = document.getElementById(button.dataset.copies);
      if (text) copy(text.textContent, button);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable], [role=combobox], [role=listbox]");
    if (event.key === "Escape" && !typing) {
      const cancel = document.querySelector("#main .cancel:not([hidden])");
      if (cancel && !document.querySelector("dialog[open]")) cancel.click();
      return;
    }
    if (typing) return;
    if (event.key === "?") { keys(); event.preventDefault(); }
    else if (event.key === "d") { turn(); pressed(); }
    else if (event.key === "p") project();
    else if (event.key === "/") {
      const first = document.querySelector("#main .field :is(input, button, select, textarea, [tabindex='0'])");
      event.preventDefault();
      if (first) setTimeout(() => first.focus(), 0); /* deferred, or the key would be typed into it */
    } else if (event.key === "l") {
      const button = document.querySelector("#main .copy-link");
      if (button) button.click();
    } else if (/^[0-9]$/.test(event.key) && !document.querySelector("dialog[open]")) {
      const links = document.querySelectorAll(".nav-link");
      const place = (Number(event.key) + 9) % 10; /* 0 is the tenth, as on the keyboard */
      if (links[place]) links[place].click();
    }
  });
})();
