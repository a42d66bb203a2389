/* A quick drawing of a Plotly figure, without Plotly: what a page shows until Plotly has come, which on a slow line takes many seconds.

   Lines, marks, bands, bars, cells, whiskers, axes, notes and the legend; no zooming. It is drawn in the width that there is, in the
   colours of the page (--ink, --line), and drawn again when that width changes. Kinds of traces that it does not know are left out. */
"use strict";
(function () {
  const NS = "http://www.w3.org/2000/svg";
  const LETTER = 0.58; /* width of a letter, in heights */

  function make(name, given, inside, text) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(given)) if (value !== undefined && value !== null) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    if (inside) inside.appendChild(made);
    return made;
  }
  /* Plotly's markup: <br> is a new line, other tags are left out, entities are read. */
  const reader = document.createElement("textarea");
  function lines(text) {
    return String(text === undefined || text === null ? "" : text).split(/<br\s*\/?>/i).map((line) => {
      reader.innerHTML = line.replace(/<[^>]*>/g, "");
      return reader.value;
    });
  }
  const plain = (text) => lines(text).join(" ");
  const list = (values) => (Array.isArray(values) ? values : []);
  const each = (value, i) => (Array.isArray(value) ? value[i] : value);

  /* -- axes ---------------------------------------------------------------------------------------------------------------------- */

  function axis(given, values, bars) {
    const a = given || {};
    const names = values.filter((v) => typeof v === "string" && (a.type === "category" || Number.isNaN(Number(v)) || v === ""));
    const categories = a.type === "category" || names.length ? [...new Set(values.filter((v) => v !== null && v !== undefined).map(String))] : null;
    const log = a.type === "log";
    const number = (v) => (categories ? (typeof v === "number" && a.type !== "category" ? v : categories.indexOf(String(v))) : log ? (v > 0 ? Math.log10(v) : NaN) : Number(v));
    const found = values.filter((v) => v !== null && v !== undefined).map(number).filter(Number.isFinite);
    let low = found.length ? Math.min(...found) : 0;
    let high = found.length ? Math.max(...found) : 1;
    if (Array.isArray(a.range) && a.range.every((v) => v !== null)) [low, high] = a.range.map(Number);
    else if (categories) [low, high] = [-0.5, categories.length - 0.5];
    else {
      if (bars || a.rangemode === "tozero") { low = Math.min(low, 0); high = Math.max(high, 0); }
      const margin = (high - low || 1) * 0.05;
      if (!(bars || a.rangemode === "tozero") || low < 0) low -= margin;
      high += margin;
    }
    if (a.autorange === "reversed") [low, high] = [high, low];
    let ticks;
    if (a.tickvals) ticks = list(a.tickvals).map((v, i) => [number(v), a.ticktext ? each(a.ticktext, i) : String(v)]);
    else if (categories) ticks = categories.map((name, i) => [i, name]);
    else ticks = steps(Math.min(low, high), Math.max(low, high), log, a);
    ticks = ticks.filter(([v]) => v >= Math.min(low, high) - 1e-9 && v <= Math.max(low, high) + 1e-9);
    return { given: a, number, low, high, ticks, categories, title: plain((a.title && a.title.text) || (typeof a.title === "string" ? a.title : "")) };
  }
  function steps(low, high, log, a) {
    const shown = (v) => (a.ticksuffix ? `${v}${a.ticksuffix}` : `${v}`);
    if (log) {
      const out = [];
      for (let k = Math.ceil(low); k <= high; k += Math.max(1, Math.ceil((high - low) / 8))) out.push([k, shown(Number((10 ** k).toPrecision(3)))]);
      return out;
    }
    const raw = (high - low || 1) / 5, ten = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((s) => s * ten).find((s) => s >= raw);
    const out = [];
    for (let k = Math.ceil(low / step); k * step <= high + step * 1e-6; k += 1) out.push([k * step, shown(Number((k * step).toPrecision(6)).toLocaleString("en"))]);
    return out;
  }

  /* -- marks --------------------------------------------------------------------------------------------------------------------- */

  const MARKS = {
    square: (r) => `M${-r},${-r}H${r}V${r}H${-r}Z`,
    diamond: (r) => `M0,${-1.3 * r}L${1.3 * r},0L0,${1.3 * r}L${-1.3 * r},0Z`,
    cross: (r) => `M${-1.2 * r},${-r / 2.5}H${-r / 2.5}V${-1.2 * r}H${r / 2.5}V${-r / 2.5}H${1.2 * r}V${r / 2.5}H${r / 2.5}V${1.2 * r}H${-r / 2.5}V${r / 2.5}H${-1.2 * r}Z`,
    x: (r) => `M${-r},${-r}L${r},${r}M${r},${-r}L${-r},${r}`,
    "triangle-up": (r) => `M0,${-1.2 * r}L${1.1 * r},${0.8 * r}H${-1.1 * r}Z`,
    star: (r) => Array.from({ length: 10 }, (_, i) => { const d = (i % 2 ? 0.6 : 1.4) * r, w = (Math.PI * i) / 5; return `${i ? "L" : "M"}${(d * Math.sin(w)).toFixed(2)},${(-d * Math.cos(w)).toFixed(2)}`; }).join("") + "Z",
    hexagon: (r) => Array.from({ length: 6 }, (_, i) => `${i ? "L" : "M"}${(1.15 * r * Math.sin((Math.PI * i) / 3)).toFixed(2)},${(-1.15 * r * Math.cos((Math.PI * i) / 3)).toFixed(2)}`).join("") + "Z",
  };
  function mark(symbol, size, colour, edge, x, y, inside) {
    const [name, open] = [String(symbol || "circle").replace("-open", ""), String(symbol || "").includes("-open")];
    const r = (size || 6) / 2, empty = open || name === "x";
    const look = { fill: empty ? "none" : colour, stroke: empty ? colour : (edge && edge.color) || "none", "stroke-width": (edge && edge.width) || (empty ? 1.6 : 0), class: "mark" };
    if (!(name in MARKS)) return make("circle", { cx: x, cy: y, r, ...look }, inside);
    return make("path", { d: MARKS[name](r), transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`, ...look }, inside);
  }
  const DASH = { dot: "2,3", dash: "7,4", longdash: "11,4", dashdot: "7,3,2,3", longdashdot: "11,3,2,3" };
  const colourOf = (t) => (t.line && t.line.color) || (t.marker && !Array.isArray(t.marker.color) && t.marker.color) || t.fillcolor || "#0072B2";

  /* -- one figure ---------------------------------------------------------------------------------------------------------------- */

  function draw(box, figure) {
    const data = list(figure && figure.data).filter((t) => t.visible !== false && t.visible !== "legendonly");
    const layout = (figure && figure.layout) || {};
    box.replaceChildren();
    box.figure = figure;
    if (!data.length) return false;
    const known = data.filter((t) => ["scatter", "scattergl", "bar", "heatmap", undefined].includes(t.type));
    if (!known.length || data.some((t) => t.xaxis && t.xaxis !== "x")) return false; /* several panels: left to Plotly */
    const held = box.appendChild(document.createElement("i")); /* an empty box is hidden, and has no width */
    const wide = box.clientWidth || 600, tall = box.clientHeight || 400;
    held.remove();
    const size = Math.max(11, Math.min(parseFloat(getComputedStyle(box).fontSize) * 0.86, 22));
    const legend = legendOf(known, layout, box);
    const height = Math.max(140, tall - (legend ? legend.offsetHeight + 4 : 0));
    const bars = known.filter((t) => t.type === "bar");
    const lying = bars.some((t) => t.orientation === "h");
    const xs = [], ys = [];
    const sums = new Map();
    for (const t of known) {
      const stack = t.type === "bar" && layout.barmode === "stack";
      list(t.x).forEach((v, i) => xs.push(stack && lying ? add(sums, each(t.y, i), v) : t.base && lying ? Number(v) + Number(each(t.base, i)) : v));
      list(t.y).forEach((v, i) => ys.push(stack && !lying ? add(sums, each(t.x, i), v) : v));
      for (const [error, of, out] of [[t.error_y, t.y, ys], [t.error_x, t.x, xs]]) {
        if (error && Array.isArray(error.array)) list(of).forEach((v, i) => out.push(v + error.array[i], v - (error.arrayminus || error.array)[i]));
      }
    }
    const x = axis(layout.xaxis, xs, lying), y = axis(layout.yaxis, ys, bars.length > 0 && !lying);
    const svg = make("svg", { width: wide, height, viewBox: `0 0 ${wide} ${height}`, "font-size": size, "aria-hidden": "true" });
    box.prepend(svg);
    const named = y.ticks.map(([v, text]) => [v, lines(text)]);
    const letters = Math.max(0, ...named.map(([, some]) => Math.max(...some.map((l) => l.length))));
    const left = Math.min(wide * 0.45, letters * size * LETTER + 10) + (y.title ? size * 1.5 : 0);
    const notes = list(layout.annotations).filter((n) => n.text && n.yref === "paper" && n.y === 1 && n.showarrow === false);
    const rows = notes.map((n) => Math.round(Math.max(0, (n.yshift || 0) - 2) / 17));
    const top = 8 + (notes.length ? (Math.max(...rows) + 1) * size * 1.3 : 0);
    const right = wide - 14, bottom = height - size * (x.title ? 3.5 : 1.9);
    const px = (v) => left + ((x.number(v) - x.low) / (x.high - x.low)) * (right - left);
    const py = (v) => bottom - ((y.number(v) - y.low) / (y.high - y.low)) * (bottom - top);
    const atx = (n) => left + ((n - x.low) / (x.high - x.low)) * (right - left), aty = (n) => bottom - ((n - y.low) / (y.high - y.low)) * (bottom - top);

    let last = -Infinity;
    for (const [v, text] of x.ticks) {
      const at = atx(v), half = (plain(text).length * size * LETTER) / 2;
      make("path", { d: `M${at.toFixed(1)},${top}V${bottom}`, class: "grid" }, svg);
      if (at - half < last + 4) continue; /* labels never touch */
      last = at + half;
      make("text", { x: at, y: bottom + size * 1.25, "text-anchor": at + half > wide ? "end" : "middle" }, svg, plain(text));
    }
    last = Infinity;
    for (const [v, some] of named) {
      const at = aty(v);
      make("path", { d: `M${left},${at.toFixed(1)}H${right}`, class: "grid" }, svg);
      if (!y.categories && Math.abs(at - last) < size * 1.2) continue;
      last = at;
      some.forEach((line, i) => make("text", { x: left - 7, y: at + size * (0.35 + 1.15 * (i - (some.length - 1) / 2)), "text-anchor": "end" }, svg, line));
    }
    make("path", { d: `M${left},${top}V${bottom}H${right}`, class: "axis" }, svg);
    if (x.title) make("text", { x: (left + right) / 2, y: bottom + size * 2.8, "text-anchor": "middle" }, svg, x.title);
    if (y.title) make("text", { transform: `translate(${size},${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, svg, y.title);

    const clip = `clip-${Math.random().toString(36).slice(2)}`;
    make("rect", { x: left, y: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) }, make("clipPath", { id: clip }, svg));
    const plot = make("g", { "clip-path": `url(#${clip})` }, svg);
    for (const s of list(layout.shapes)) {
      if (s.yref && !s.yref.includes("domain") && s.yref !== "paper") continue;
      const [a, b] = [px(s.x0), px(s.x1)];
      const look = { fill: s.fillcolor || "none", stroke: (s.line && s.line.width !== 0 && s.line.color) || "none", "stroke-width": (s.line && s.line.width) || 0, "stroke-dasharray": DASH[s.line && s.line.dash] };
      if (s.type === "rect") make("rect", { x: Math.min(a, b), y: top, width: Math.abs(b - a), height: bottom - top, ...look }, plot);
      else make("path", { d: `M${a},${top}V${bottom}`, ...look }, plot);
    }
    const before = new Map();
    for (const t of known) {
      if (t.type === "bar") barsOf(t, { px, py, x, y, before, lying, layout, many: bars.length, at: bars.indexOf(t) }, plot);
      else if (t.type === "heatmap") cells(t, { atx, aty, x, y }, plot);
      else curve(t, px, py, plot);
    }
    notes.forEach((n, i) => {
      const at = n.xref === "paper" ? left + n.x * (right - left) : atx(n.x);
      const half = (plain(n.text).length * size * LETTER * 0.9) / 2;
      const end = n.xanchor === "right" || at + half > wide;
      make("text", { x: end ? right : Math.max(at, half), y: top - 5 - rows[i] * size * 1.3, "text-anchor": end ? "end" : "middle", "font-size": size * 0.88 }, svg, plain(n.text));
    });
    return true;
  }
  function add(sums, key, value) {
    sums.set(key, (sums.get(key) || 0) + Number(value || 0));
    return sums.get(key);
  }

  function curve(t, px, py, plot) {
    const colour = colourOf(t), mode = t.mode || "lines";
    const points = list(t.x).map((v, i) => (v === null || each(t.y, i) === null ? null : [px(v), py(each(t.y, i))]));
    const good = (p) => p && p.every(Number.isFinite);
    const path = points.map((p, i) => (good(p) ? `${i && good(points[i - 1]) ? "L" : "M"}${p[0].toFixed(1)},${p[1].toFixed(1)}` : "")).join("");
    if (mode.includes("lines") && path) {
      const filled = t.fill && t.fill !== "none";
      make("path", { d: path + (filled ? "Z" : ""), fill: filled ? t.fillcolor : "none", stroke: colour, "stroke-width": (t.line && t.line.width) || 2, "stroke-dasharray": DASH[t.line && t.line.dash], "stroke-linejoin": "round", class: "curve" }, plot);
    }
    if (t.error_y && Array.isArray(t.error_y.array)) {
      points.forEach((p, i) => {
        if (!good(p)) return;
        const v = each(t.y, i), up = py(v + t.error_y.array[i]), down = py(v - (t.error_y.arrayminus || t.error_y.array)[i]);
        make("path", { d: `M${p[0] - 4},${up}h8M${p[0]},${up}V${down}M${p[0] - 4},${down}h8`, stroke: t.error_y.color || colour, "stroke-width": t.error_y.thickness || 2, fill: "none" }, plot);
      });
    }
    if (!mode.includes("markers")) return;
    const m = t.marker || {};
    points.forEach((p, i) => {
      if (!good(p) || each(m.size, i) === 0) return;
      mark(each(m.symbol, i), each(m.size, i) || 6, each(m.color, i) || colour, m.line, p[0], p[1], plot);
    });
  }
  function barsOf(t, to, plot) {
    const lying = to.lying, along = lying ? list(t.y) : list(t.x), values = lying ? list(t.x) : list(t.y);
    const scale = lying ? to.px : to.py, across = lying ? to.py : to.px;
    const stacked = to.layout.barmode === "stack", grouped = !stacked && to.layout.barmode !== "overlay" && to.many > 1;
    const step = Math.abs(across(along.length > 1 ? along[1] : along[0]) - across(along[0])) || 60;
    const axisOf = lying ? to.y : to.x;
    const unit = axisOf.categories ? Math.abs(across(axisOf.categories[1] || axisOf.categories[0]) - across(axisOf.categories[0])) || (lying ? 70 : 90) : step;
    const thick = Math.min(unit * (t.width && !Array.isArray(t.width) ? t.width : 0.72), 90) / (grouped ? to.many : 1);
    along.forEach((key, i) => {
      const from = stacked ? to.before.get(key) || 0 : Number(each(t.base, i) || 0);
      const until = from + Number(values[i] || 0);
      if (stacked) to.before.set(key, until);
      const [a, b] = [scale(from), scale(until)], c = across(key) + (grouped ? (to.at - (to.many - 1) / 2) * thick : 0);
      const colour = each(t.marker && t.marker.color, i) || "#0072B2";
      const place = lying ? { x: Math.min(a, b), y: c - thick / 2, width: Math.abs(b - a), height: thick } : { x: c - thick / 2, y: Math.min(a, b), width: thick, height: Math.abs(b - a) };
      if (Object.values(place).every(Number.isFinite)) make("rect", { ...place, fill: colour, class: "bar" }, plot);
    });
  }
  function cells(t, to, plot) {
    const rows = list(t.z), all = rows.flat().filter((v) => v !== null && Number.isFinite(v));
    const low = t.zmin === undefined ? Math.min(...all) : t.zmin, high = t.zmax === undefined ? Math.max(...all) : t.zmax;
    rows.forEach((row, j) => list(row).forEach((v, i) => {
      if (v === null || !Number.isFinite(v)) return;
      const [a, b, c, d] = [to.atx(i - 0.5), to.atx(i + 0.5), to.aty(j - 0.5), to.aty(j + 0.5)];
      let share = high > low ? (v - low) / (high - low) : 0.5;
      if (!t.reversescale) share = 1 - share;
      const mix = [[0, 32, 81], [127, 124, 117], [253, 234, 69]], k = (1 - share) * 2, n = Math.min(1, Math.floor(k)), f = k - n;
      const colour = mix[n].map((q, z) => Math.round(q + (mix[n + 1][z] - q) * f));
      make("rect", { x: Math.min(a, b), y: Math.min(c, d), width: Math.max(0.5, Math.abs(b - a) - 1), height: Math.max(0.5, Math.abs(d - c) - 1), fill: `rgb(${colour})`, class: "cell" }, plot);
    }));
  }

  function legendOf(known, layout, box) {
    const shown = known.filter((t) => t.showlegend !== false && t.name && t.type !== "heatmap");
    if (layout.showlegend === false || (shown.length < 2 && layout.showlegend !== true)) return null;
    const made = document.createElement("ul");
    made.className = "sketch-legend";
    for (const t of shown) {
      const item = document.createElement("li"), svg = make("svg", { width: 34, height: 14, viewBox: "0 0 34 14", "aria-hidden": "true" });
      const colour = colourOf(t), m = t.marker || {};
      if (t.type === "bar") make("rect", { x: 8, y: 1, width: 18, height: 12, fill: Array.isArray(m.color) ? m.color[0] : m.color }, svg);
      else {
        if ((t.mode || "lines").includes("lines")) make("path", { d: "M1,7H33", stroke: colour, "stroke-width": 2.5, "stroke-dasharray": DASH[t.line && t.line.dash] }, svg);
        if ((t.mode || "").includes("markers")) mark(each(m.symbol, 0), Math.min(11, each(m.size, 0) || 7), each(m.color, 0) || colour, m.line, 17, 7, svg);
      }
      item.append(svg, plain(t.name));
      made.append(item);
    }
    box.append(made);
    return made;
  }

  /* -- on a page ----------------------------------------------------------------------------------------------------------------- */

  const watched = new ResizeObserver((some) => {
    for (const { target } of some) {
      const wide = target.clientWidth;
      if (target.figure && wide && target.drawnAt !== wide) { target.drawnAt = wide; draw(target, target.figure); }
    }
  });
  window.retrompiSketch = {
    draw: function (box, figure) {
      box.drawnAt = box.clientWidth;
      const done = draw(box, figure);
      watched.observe(box);
      return done;
    },
    clear: function (box) {
      watched.unobserve(box);
      box.figure = null;
      box.replaceChildren();
    },
  };
  const first = document.getElementById("first-sketch"); /* of the studio's first answer */
  if (first) window.retrompiSketch.draw(first, JSON.parse(document.getElementById("first-data").textContent));
})();
