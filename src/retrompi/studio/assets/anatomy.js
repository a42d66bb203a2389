/* Draws and plays the animation of a message. All movement comes from the data (studio/anatomy/scene.py): nothing is invented here. */
"use strict";
window.dash_clientside = window.dash_clientside || {};
(function () {
  const { _, lazy, fill } = window.retrompiWords;
  const SVG = "http://www.w3.org/2000/svg";
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const CONTROL = ["request", "ready", "matched", "done"];
  /* What a process does, in so few letters that its box holds them. */
  const STATES = {
    library: lazy("library"), copy: lazy("copies"), syscall: lazy("system call"), event: lazy("signals"), switch: lazy("switched to"),
    tick: lazy("waits for a tick"), quantum: lazy("kept off the CPU"), queueing: lazy("waits for CPU"), poll: lazy("polls"),
    interrupt: lazy("interrupted"), compute: lazy("computes"), lock: lazy("lock"), line: lazy("cache line"), nic: lazy("feeds the card"),
    ack: lazy("waits for timer"),
  };
  const WAITS = {
    "a message": lazy("awaits message"), "nothing to do": lazy("idle"), "a send": lazy("awaits its send"), "room": lazy("awaits room"),
    "a lock": lazy("awaits lock"), other: lazy("waits"),
  };
  let player = null;

  function el(name, attributes, parent, text) {
    const e = document.createElementNS(SVG, name);
    for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
    if (parent) parent.appendChild(e);
    return e;
  }
  /* A text is drawn no wider than its box: its letters are pressed together rather than cut. */
  function fit(text, width) {
    text.removeAttribute("textLength");
    if (text.getComputedTextLength() <= width) return;
    text.setAttribute("textLength", width.toFixed(1));
    text.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }
  function tag(name, attributes, parent, text) {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
    if (parent) parent.appendChild(e);
    return e;
  }
  function time(ps) {
    if (ps === 0) return "0 s";
    const units = [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3]];
    const [unit, size] = units.find(([, s]) => Math.abs(ps) >= s) || ["ps", 1];
    return `${Number((ps / size).toPrecision(4))} ${unit}`;
  }
  /* The last piece that begins at or before t. */
  function at(pieces, t) {
    let low = 0, high = pieces.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pieces[middle][0] <= t) low = middle + 1; else high = middle;
    }
    const p = pieces[low - 1];
    return p && t < p[1] ? p : null;
  }

  class Scene {
    constructor(data, where, number, many) {
      this.data = data;
      this.figure = tag("figure", { class: "scene-figure" }, where);
      tag("figcaption", {}, this.figure, data.title);
      this.svg = el("svg", { class: "scene", viewBox: `0 0 ${data.width} ${data.height}`, role: "img", "aria-label": data.alt }, this.figure);
      this.side = tag("div", { class: "side" }, this.figure);
      this.now = tag("p", { class: "now", id: `anatomy-now-${number}` }, this.side);
      this.lanes = el("svg", { class: "lanes", role: "presentation" }, this.side);
      this.number = number;
      this.boxes = {};
      this.ways = {};
      this.patterns(this.svg);
      this.still(many);
      this.layer = el("g", { class: "tokens" }, this.svg);
      this.marks = data.tokens.map((t) => this.token(t));
      this.more = {};
    }
    patterns(svg) {
      const defs = el("defs", {}, svg);
      for (const [name, [colour, hatched]] of Object.entries(this.data.stages)) {
        if (!hatched) continue;
        const p = el("pattern", { id: `hatch-${this.number}-${name}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, defs);
        el("rect", { width: 6, height: 6, fill: colour }, p);
        el("rect", { width: 2, height: 6, fill: "#fff", opacity: 0.75 }, p);
      }
    }
    paint(stage) {
      const look = this.data.stages[stage];
      if (!look || look[0] === "none") return "none";
      return look[1] ? `url(#hatch-${this.number}-${stage})` : look[0];
    }
    still(many) {
      /* The letters are made for the width that it will have beside the others. */
      const figure = this.figure.parentElement.clientWidth, side = figure / many >= 352 ? figure / many : figure;
      const d = this.data, narrow = Math.min(1.35, Math.max(1, 600 / (many > 1 ? side : this.svg.clientWidth || 640)));
      const font = (n) => (n * narrow).toFixed(1);
      for (const [name, x, y, w, h] of d.hosts) {
        el("rect", { class: "host", x, y, width: w, height: h, rx: 8 }, this.svg);
        el("text", { class: "hostname", x: x + 10, y: y + 20, "font-size": font(15) }, this.svg, name);
      }
      for (const line of d.lines) {
        const [a, b] = line.points;
        this.ways[line.name] = { line, e: el("line", { class: `way ${line.kind}`, x1: a[0], y1: a[1], x2: b[0], y2: b[1], "data-name": line.name }, this.svg) };
        if (line.label) {
          const wire = line.kind === "wire";
          el("text", { class: "sub", x: (a[0] + b[0]) / 2, y: wire ? d.height - 5 : a[1] - 8, "text-anchor": "middle", "font-size": font(13) }, this.svg, line.label);
        }
      }
      for (const box of d.boxes) {
        const g = el("g", { class: `place ${box.kind}`, "data-name": box.name }, this.svg);
        el("rect", { class: "box", x: box.x, y: box.y, width: box.w, height: box.h, rx: box.kind === "memory" ? 2 : 8 }, g);
        const middle = box.x + box.w / 2;
        const entry = { box, g };
        if (box.kind === "process") {
          entry.lamp = el("rect", { class: "lamp", x: box.x + 3, y: box.y + 3, width: 10, height: box.h - 6, rx: 3, fill: "none" }, g);
          el("text", { x: middle + 5, y: box.y + 20, "text-anchor": "middle", "font-weight": 600, "font-size": font(16) }, g, box.label);
          entry.width = box.w - 28;
          entry.state = el("text", { class: "sub", x: middle + 5, y: box.y + 41, "text-anchor": "middle", "font-size": font(13) }, g, "");
        } else {
          fit(el("text", { x: middle, y: box.y + (box.note ? 18 : box.h / 2 + 5), "text-anchor": "middle", "font-size": font(14) }, g, box.label), box.w - 10);
          if (box.note) fit(el("text", { class: "sub", x: middle, y: box.y + 36, "text-anchor": "middle", "font-size": font(13) }, g, box.note), box.w - 10);
        }
        this.boxes[box.name] = entry;
      }
    }
    token(t) {
      const control = CONTROL.includes(t.kind);
      const kind = t.kind === "timer" ? "timer" : control ? "control" : t.back ? "back" : "";
      const g = el("g", { visibility: "hidden" }, this.layer);
      const c = { class: `token ${kind}` };
      if (t.kind === "timer") el("circle", { ...c, r: 9 }, g);
      else if (control) el("path", { ...c, d: "M0 -10 L10 0 L0 10 L-10 0 Z" }, g);
      else if (t.kind === "data" || t.kind === "transfer") el("rect", { ...c, x: -9, y: -7, width: 18, height: 14, rx: 2 }, g);
      else if (t.back) el("path", { ...c, d: "M-8 0 L6 -7 L6 7 Z" }, g);
      else el("circle", { ...c, r: 6 }, g);
      el("title", {}, g, t.label);
      return { t, g };
    }
    show(t) {
      const d = this.data, inside = {}, still = calm.matches;
      for (const { t: token, g } of this.marks) {
        const step = t <= d.total ? at(token.steps, t) : null;
        if (!step) { g.setAttribute("visibility", "hidden"); continue; }
        let x, y;
        if (step[3]) {
          const { line } = this.ways[step[2]];
          const [from, to] = line.a === step[3] ? line.points : [line.points[1], line.points[0]];
          const part = still ? 0.5 : (t - step[0]) / (step[1] - step[0]);
          x = from[0] + (to[0] - from[0]) * part;
          y = from[1] + (to[1] - from[1]) * part;
        } else {
          const { box } = this.boxes[step[2]];
          const n = (inside[step[2]] = (inside[step[2]] || 0) + 1) - 1, row = Math.max(3, Math.floor((box.w - 24) / 20));
          if (n >= 2 * row) { g.setAttribute("visibility", "hidden"); continue; }
          x = box.x + 14 + (n % row) * 20;
          y = box.y + box.h - 5 + Math.floor(n / row) * 8;
        }
        g.setAttribute("visibility", "visible");
        g.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      }
      for (const lane of d.lanes) {
        const place = this.boxes[lane.box], piece = at(lane.pieces, t);
        if (!place) continue;
        place.lamp.setAttribute("fill", piece ? this.paint(piece[2]) : "none");
        const state = !piece ? "" : piece[2] === "wait" ? _(WAITS[piece[3]] || WAITS.other) : _(STATES[piece[2]] || piece[2]);
        if (place.state.textContent === state) continue;
        place.state.textContent = state;
        fit(place.state, place.width);
      }
      const link = at(d.strip, Math.min(t, d.total - 1));
      const here = t < d.total && link ? link[3] : "";
      for (const [name, { g }] of Object.entries(this.boxes)) g.classList.toggle("here", name === here);
      for (const [name, { e }] of Object.entries(this.ways)) e.classList.toggle("here", name === here);
      const told = t >= d.total ? fill(_("Arrived after {time}."), { time: time(d.total) }) : link ? this.told(link) : "";
      if (this.now.textContent !== told) this.now.textContent = told;
      if (this.head) {
        const x = this.left + (this.right - this.left) * Math.min(1, t / this.scale);
        this.head.setAttribute("x1", x);
        this.head.setAttribute("x2", x);
      }
    }
    told(link) {
      return fill(_("{stage}: {what} ({time})"), { stage: this.data.names[link[2]], what: this.data.texts[link[4]], time: time(link[1] - link[0]) });
    }
    strip(scale) {
      /* The chain of causes and a lane for every process, stacked and scaled to the window. */
      const d = this.data, width = Math.max(260, this.side.clientWidth);
      const letter = parseFloat(getComputedStyle(document.documentElement).fontSize), narrow = width < 31 * letter;
      const rows = [[_("the message"), d.strip], ...d.lanes.map((l) => [narrow ? l.short : l.name, l.pieces])];
      this.scale = scale;
      const step = Math.round(letter * 1.5);
      this.left = letter * (narrow ? 6.4 : 10.4);
      this.right = width - 6;
      const height = 12 + rows.length * step + step;
      this.lanes.replaceChildren();
      this.lanes.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.lanes.setAttribute("height", height);
      const x = (t) => this.left + (this.right - this.left) * (t / scale);
      rows.forEach(([name, pieces], i) => {
        const y = 8 + i * step;
        fit(el("text", { x: 2, y: y + step * 0.62, "font-weight": i ? 400 : 600 }, this.lanes, name), this.left - 8);
        el("line", { class: "rule", x1: this.left, x2: this.right, y1: y + step * 0.87, y2: y + step * 0.87 }, this.lanes);
        for (const [begin, end, stage, why] of pieces) {
          const colour = this.paint(stage);
          if (colour === "none") continue;
          const r = el("rect", { x: x(begin).toFixed(2), y: y + (i ? step * 0.16 : 0), width: Math.max(0.6, x(end) - x(begin)).toFixed(2), height: step * (i ? 0.6 : 0.82), fill: colour }, this.lanes);
          const what = d.names[stage] + (i && why ? ` (${_(WAITS[why] || why)})` : "");
          el("title", {}, r, fill(_("{process}: {stage}, {time}"), { process: name, stage: what, time: time(end - begin) }));
        }
      });
      const parts = [4, 2].find((n) => this.right - this.left >= 5 * n * letter) || 1;  // a time takes up to four letters' width
      for (let i = 0; i <= parts; ++i) {
        const t = (scale * i) / parts;
        el("text", { x: x(t), y: height - 4, "text-anchor": i === parts ? "end" : i ? "middle" : "start" }, this.lanes, time(t));
      }
      this.head = el("line", { class: "head", x1: 0, x2: 0, y1: 2, y2: height - step * 0.8 }, this.lanes);
    }
  }

  class Player {
    constructor(root, scenes, page) {
      this.root = root;
      this.given = JSON.stringify(scenes);
      this.page = page;
      root.replaceChildren();
      this.total = Math.max(...scenes.map((s) => s.total));
      this.t = 0;
      this.playing = false;
      this.tools();
      const where = tag("div", { class: scenes.length > 1 ? "scenes" : "scenes single" }, root);
      this.scenes = scenes.map((s, i) => new Scene(s, where, i, scenes.length));
      this.key(scenes);
      const begins = scenes.flatMap((s) => [...s.strip.map((p) => p[0]), s.total]);
      this.stops = [...new Set([0, ...begins])].sort((a, b) => a - b);
      this.resize = () => { this.scenes.forEach((s) => s.strip(this.total)); this.show(); };
      new ResizeObserver(this.resize).observe(where);
      where.addEventListener("click", (event) => {
        const lanes = event.target.closest(".lanes");
        if (!lanes) return;
        const scene = this.scenes.find((s) => s.lanes === lanes), box = lanes.getBoundingClientRect();
        const part = (event.clientX - box.left) / box.width * lanes.viewBox.baseVal.width;
        this.seek(this.total * Math.min(1, Math.max(0, (part - scene.left) / (scene.right - scene.left))));
      });
      this.resize();
    }
    /* Goes on in another element of the page, as it is. */
    move(root) {
      const focused = this.root.contains(document.activeElement) ? document.activeElement : null, playing = this.playing;
      this.pause();
      root.replaceChildren(...this.root.childNodes);
      this.root = root;
      this.resize();
      if (focused) focused.focus({ preventScroll: true });
      if (playing) this.toggle();
    }
    tools() {
      const bar = tag("div", { class: "player-tools", role: "group", "aria-label": _("the moving picture") }, this.root);
      const button = (id, text, label, act) => {
        const b = tag("button", { type: "button", id: `${this.page}-${id}`, "aria-label": label, title: label }, bar, text);
        b.addEventListener("click", act);
        return b;
      };
      this.play = button("play", "▶", _("play (space)"), () => this.toggle());
      button("before", `‹ ${_("step")}`, _("one step back (←)"), () => this.step(-1));
      button("next", `${_("step")} ›`, _("one step on (→)"), () => this.step(1));
      this.range = tag("input", { type: "range", min: 0, max: 10000, value: 0, id: `${this.page}-scrub`, "aria-label": _("simulated time") }, bar);
      this.range.addEventListener("input", () => this.seek((this.total * this.range.value) / 10000));
      this.clock = tag("output", { for: `${this.page}-scrub`, id: `${this.page}-clock` }, bar);
      const label = tag("label", {}, bar, `${_("whole message in")} `);
      this.speed = tag("select", { id: `${this.page}-speed` }, label);
      for (const s of [5, 10, 20, 60, 180]) tag("option", { value: s, ...(s === 10 ? { selected: "" } : {}) }, this.speed, `${s} s`);
    }
    key(scenes) {
      const used = new Set(scenes.flatMap((s) => [...s.strip.map((p) => p[2]), ...s.lanes.flatMap((l) => l.pieces.map((p) => p[2]))]));
      const list = tag("ul", { class: "stage-key", "aria-label": _("stages") }, this.root);
      for (const stage of Object.keys(scenes[0].stages)) {
        if (!used.has(stage) || stage === "wait") continue;
        const item = tag("li", {}, list);
        const s = el("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, item);
        el("rect", { width: 16, height: 16, rx: 2, fill: this.scenes[0].paint(stage) }, s);
        const shown = scenes[0].names[stage];
        item.append(shown);
        item.title = `${shown === stage ? "" : `${stage}: `}${scenes[0].words[stage] || ""}`; /* as the command line calls it */
      }
      const kinds = new Map(scenes.flatMap((s) => s.tokens).map((t) => [t.kind, t]));
      const things = tag("ul", { class: "stage-key", "aria-label": _("what moves") }, this.root);
      for (const [kind, t] of kinds) {
        const item = tag("li", {}, things);
        const s = el("svg", { viewBox: "-12 -12 24 24", class: "scene", style: "display:inline", "aria-hidden": "true" }, item);
        const { g } = this.scenes[0].token(t);
        g.setAttribute("visibility", "visible");
        s.appendChild(g);
        item.append(t.label.split(",")[0]);
      }
      for (const s of scenes) if (s.note) tag("p", { class: "soft" }, this.root, s.note);
    }
    show() {
      this.scenes.forEach((s) => s.show(this.t));
      this.range.value = Math.round((10000 * this.t) / this.total);
      const text = fill(_("{time} of {total}"), { time: time(this.t), total: time(this.total) });
      this.clock.textContent = text;
      this.range.setAttribute("aria-valuetext", text);
    }
    seek(t) {
      this.t = Math.min(this.total, Math.max(0, t));
      this.show();
    }
    step(way) {
      this.pause();
      const next = way > 0 ? this.stops.find((s) => s > this.t) : this.stops.filter((s) => s < this.t).pop();
      if (next !== undefined) this.seek(next);
    }
    pause() {
      this.playing = false;
      this.play.textContent = "▶";
      this.play.setAttribute("aria-label", _("play (space)"));
    }
    toggle() {
      if (this.playing) return this.pause();
      if (this.t >= this.total) this.t = 0;
      this.playing = true;
      this.play.textContent = "❚❚";
      this.play.setAttribute("aria-label", _("pause (space)"));
      let last = performance.now(), moved = 0;
      const run = this.run = {};
      const frame = (now) => {
        if (this.run !== run || !this.playing || !document.body.contains(this.root) || player !== this) return;
        if (calm.matches) { /* reduced motion: jump from stop to stop, slowly enough to read */
          if (now - moved > 900) {
            const next = this.stops.find((s) => s > this.t);
            if (next === undefined) return this.pause();
            this.seek(next);
            moved = now;
          }
        } else {
          this.seek(this.t + (this.total * (now - last)) / 1000 / Number(this.speed.value));
          if (this.t >= this.total) return this.pause();
        }
        last = now;
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    }
  }

  document.addEventListener("keydown", (event) => {
    if (!player || !document.body.contains(player.root) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, button, a, summary, [contenteditable], [role=combobox], [role=listbox], [role=slider], dialog")) return;
    if (event.key === " ") player.toggle();
    else if (event.key === "ArrowRight") player.step(1);
    else if (event.key === "ArrowLeft") player.step(-1);
    else if (event.key === "Home") player.seek(0);
    else if (event.key === "End") player.seek(player.total);
    else return;
    event.preventDefault();
  });

  window.dash_clientside.retrompi_anatomy = {
    draw: function (scenes) {
      const root = document.getElementById("anatomy-player");
      if (!root) return window.dash_clientside.no_update;
      /* The page opens with what the first answer has shown: who plays it goes on. */
      if (player && player.root === root && player.given === JSON.stringify(scenes)) return scenes.length;
      if (player) player.pause();
      if (!scenes || !scenes.length) { root.replaceChildren(); player = null; return 0; }
      player = new Player(root, scenes, "anatomy");
      return scenes.length;
    },
    /* On the front page: a message that was asked for, from its beginning. */
    play: function (scenes) {
      const root = document.getElementById("start-player");
      if (player) player.pause();
      if (!root || !scenes || !scenes.length) return window.dash_clientside.no_update;
      player = new Player(root, scenes, "start");
      player.toggle();
      root.scrollIntoView({ block: "nearest" });
      return scenes.length;
    },
    /* The slider and the text of a size are kept equal: 0 is 0 B, k is 2^(k-1) B. */
    size: function (slider, text) {
      const no = window.dash_clientside.no_update;
      const which = window.dash_clientside.callback_context.triggered_id || "";
      if (which.endsWith("-slider")) {
        const bytes = slider > 0 ? 2 ** (slider - 1) : 0;
        return [no, bytes >= 1048576 ? `${bytes / 1048576} MiB` : bytes >= 1024 ? `${bytes / 1024} KiB` : `${bytes} B`];
      }
      const found = /^\s*([0-9.]+)\s*(B|kB|KiB|MiB)?\s*$/.exec(text || "");
      if (!found) return [no, no];
      const bytes = Number(found[1]) * { B: 1, kB: 1000, KiB: 1024, MiB: 1048576 }[found[2] || "B"];
      const place = bytes < 1 ? 0 : Math.min(25, Math.round(Math.log2(bytes)) + 1);
      return [place === slider ? no : place, no];
    },
    second: function (view) { return view === "two" ? {} : { display: "none" }; },
  };

  /* The scenes of the first answer are played at once, and move into the page as soon as there is one. */
  const first = document.getElementById("first-player");
  if (first) {
    player = new Player(first, JSON.parse(document.getElementById("first-data").textContent), "anatomy");
    const path = location.pathname;
    const watch = new MutationObserver(() => {
      const root = document.querySelector("#main #anatomy-player");
      if (!root && location.pathname === path) return;
      watch.disconnect();
      if (root && player.root === first) player.move(root);
    });
    watch.observe(document.documentElement, { childList: true, subtree: true });
  }
})();
