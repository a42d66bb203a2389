// The timeline of a page: draws the tiles of render/timeline/tiles.py on a canvas and reads the blocks it needs as one zooms.
// Every column of pixels shows the exact shares of its time; where a column is less than a state, that is the state.
function retrompiTimeline(box, head) {
  'use strict';
  const { bins: BINS, fan: FAN, gap: GAP, merged: MERGED } = head.tiles;
  const { _, ngettext, fill, count } = retrompiWordsOf(head.words);
  const find = (name) => box.querySelector(`[data-part="${name}"]`);
  const canvas = find('canvas'), scroll = find('rows'), spacer = find('spacer'), tip = find('tip'), told = find('told'), lines = find('lines');
  const pen = canvas.getContext('2d');
  const dark = matchMedia('(prefers-color-scheme: dark)');

  // ---- blocks

  const offsets = head.firsts.map((firsts, file) => {
    const lengths = head.lengths[file], out = [];
    firsts.forEach((first, chunk) => {
      for (let b = first, at = 0; b < (firsts[chunk + 1] ?? lengths.length); b++) { out.push([chunk, at]); at += lengths[b]; }
    });
    return out;
  });
  const texts = new Map();  // the last elements read, as strings
  function text(id) {
    let found = texts.get(id);
    if (found === undefined) {
      const element = document.getElementById(id);
      if (!element || (document.readyState === 'loading' && !element.nextSibling)) return null;  // it has not arrived in full
      found = element.textContent;
      texts.set(id, found);
      if (texts.size > 24) texts.delete(texts.keys().next().value);
    }
    return found;
  }
  async function unpack(number) {  // the columns of a block, as arrays of numbers
    const file = number % 2, place = (number - file) / 2, [chunk, at] = offsets[file][place];
    const whole = text(`blocks-${file}-${chunk}`);
    if (whole === null) return null;
    const raw = atob(whole.substr(at, head.lengths[file][place])), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    const data = new Uint8Array(await new Response(stream).arrayBuffer());
    let p = 0;
    const next = () => {
      let value = 0, factor = 1, byte;
      do { byte = data[p++]; value += (byte & 127) * factor; factor *= 128; } while (byte > 127);
      return value;
    };
    const n = next(), out = [];
    while (p < data.length) {
      const column = new Float64Array(n);
      for (let i = 0; i < n; i++) { const v = next(); column[i] = v % 2 ? -(v + 1) / 2 : v / 2; }
      out.push(column);
    }
    return { n, columns: out };
  }
  const kept = new Map();  // block -> what it was made into; null while it is being read
  let entries = 0;
  function block(number, make) {
    const have = kept.get(number);
    if (have !== undefined) {
      if (have) { kept.delete(number); kept.set(number, have); }  // the last used is the last to go
      return have;
    }
    kept.set(number, null);
    unpack(number).then((got) => {
      if (got === null) { kept.delete(number); setTimeout(redraw, 60); return; }
      kept.set(number, make(got));
      entries += got.n;
      for (const [k, v] of kept) {
        if (entries < 4e6 || kept.size < 64) break;
        if (v && k !== number) { entries -= v.n; kept.delete(k); }
      }
      redraw();
    });
    return null;
  }

  // ---- trees

  function tree(list) {  // nodes in preorder -> objects
    let i = 0;
    const node = (depth, number) => {
      const code = list[i++], made = { block: code >> 1, depth, number, below: null };
      if (code % 2) made.below = Array.from({ length: FAN }, (_, k) => node(depth + 1, number * FAN + k));
      return made;
    };
    return list.length ? node(0, 0) : null;
  }
  const makeShares = ({ n, columns: [step, value, time] }) => {
    for (let i = 1; i < n; i++) step[i] += step[i - 1];
    return { n, at: step, value, time };
  };
  function makeLeaf({ n, columns: [first, length, value, ...detail] }) {
    const at = new Float64Array(n + 1);
    if (n) at[0] = first[0];
    for (let i = 0; i < n; i++) at[i + 1] = at[i] + length[i];
    return { n, at, value, detail, length };
  }
  const tracks = head.tracks.map((t) => ({ ...t, lane: tree(t.tree), strip: t.calls ? tree(t.calls) : null }));
  const place = head.runs.map((_, r) => new Map(tracks.flatMap((t, i) => (t.run === r && t.process >= 0 ? [[t.process, i]] : []))));

  // The parts of a tree that show from .. to (ps of the run) with bins of at most `fine` ps: f(node, data, begin, end).
  function visit(node, width, from, to, fine, f) {
    const w = width / FAN ** node.depth, begin = node.number * BINS * w, end = begin + BINS * w;
    if (end <= from || begin >= to) return true;
    if (!node.below) {
      const data = block(node.block, makeLeaf);
      if (data) f(node, data, begin, end, 0);
      return !!data;
    }
    const share = (a, b) => {
      const data = block(node.block, makeShares);
      if (data) f(node, data, Math.max(a, begin), Math.min(b, end), w);
      return !!data;
    };
    if (w <= fine) return share(begin, end);
    let all = true;
    node.below.forEach((child, k) => {
      if (visit(child, width, from, to, fine, f)) return;
      const a = begin + (k * BINS / FAN) * w;
      if (!child.below || kept.get(child.block) == null) all = share(a, a + (BINS / FAN) * w) && all;  // until it has come: the coarser one
    });
    return all;
  }

  // ---- what is in view

  const view = { from: 0, to: 1, top: 0 };
  const shift = head.runs.map(() => 0);  // ps of a run at the common zero
  let order = [];
  const span = () => {
    const ends = head.runs.map((r, i) => [-shift[i], r.span - shift[i]]);
    return [Math.min(...ends.map((e) => e[0])), Math.max(...ends.map((e) => e[1]))];
  };
  function all() { [view.from, view.to] = span(); clamp(); }
  function clamp() {
    const [first, last] = span(), whole = last - first;
    let wide = Math.min(Math.max(view.to - view.from, 200), whole * 1.02 + 1);
    const from = Math.min(Math.max(view.from, first - whole * 0.01 - 1), last + whole * 0.01 + 1 - wide);
    view.from = from;
    view.to = from + wide;
  }
  const rowHeight = (() => {
    const n = tracks.length;
    return n <= 8 ? 46 : n <= 24 ? 34 : n <= 80 ? 24 : 18;
  })();
  const AXIS = 24;
  let gutter = 90, wide = 300, high = 300, ratio = 1;
  function measure() {
    wide = scroll.clientWidth;
    const most = Math.max(240, Math.min(innerHeight * (wide < 500 ? 0.52 : 0.72), 900));  // tools and legend take more lines on a phone
    high = Math.min(most, order.length * rowHeight + AXIS + 4);
    scroll.style.height = `${high}px`;
    spacer.style.height = `${order.length * rowHeight + AXIS + 4 - high}px`;
    ratio = devicePixelRatio || 1;
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(high * ratio);
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    pen.font = font(13);
    const widest = Math.max(...tracks.slice(0, 400).map((t) => pen.measureText(label(t)).width), 20);
    gutter = Math.ceil(Math.min(widest + 14, wide * 0.32));
  }
  const font = (px) => `${px}px system-ui, "Segoe UI", "DejaVu Sans", sans-serif`;
  const label = (t) => (head.runs.length > 1 ? `${head.runs[t.run].letter} ` : '') + t.name;

  // ---- drawing

  const colours = () => head.kinds.map(([, colour]) => (!dark.matches ? colour
    : colour === '#000000' ? '#f4f4f4' : colour === '#DDDDDD' ? '#3d444f' : colour));
  let fills = [], ink = '#1a1a1a', paper = '#fff', soft = '#666', rule = '#ddd';
  function inks() {
    const style = getComputedStyle(document.documentElement);
    const of = (name, other) => style.getPropertyValue(name).trim() || other;
    ink = of('--ink', '#1a1a1a'); paper = of('--paper', '#fff'); soft = of('--soft', '#666'); rule = of('--line', '#ddd');
    fills = colours().map((colour, k) => {
      const hatch = head.kinds[k][2];
      if (!hatch) return colour;
      const tile = document.createElement('canvas');
      tile.width = tile.height = 8;
      const p = tile.getContext('2d');
      p.fillStyle = colour; p.fillRect(0, 0, 8, 8);
      p.strokeStyle = '#1a1a1a'; p.lineWidth = 1.2;
      p.beginPath(); p.moveTo(-2, 10); p.lineTo(10, -2); p.moveTo(-2, 2); p.lineTo(2, -2); p.moveTo(6, 10); p.lineTo(10, 6);
      if (hatch === 'x') { p.moveTo(-2, -2); p.lineTo(10, 10); }
      p.stroke();
      return pen.createPattern(tile, 'repeat');
    });
  }
  const x = (at) => gutter + (at - view.from) / (view.to - view.from) * (wide - gutter);
  const y = (row) => AXIS + row * rowHeight - view.top;

  // Times by column of pixels and kind, of one lane; the exact intervals that are wide enough to be named go to `wideOnes`.
  function columnsOf(root, run, kindOf, kinds, wideOnes) {
    const cols = Math.max(1, Math.floor(wide - gutter)), perPs = cols / (view.to - view.from);
    const acc = new Float32Array(cols * kinds);
    const s = shift[run], from = view.from + s, to = view.to + s;
    const add = (a, b, kind, part) => {  // from a to b (ps of the run) `part` of the time is in `kind`
      let u = (a - from) * perPs, v = (b - from) * perPs;
      if (u < 0) u = 0;
      if (v > cols) v = cols;
      if (v <= u) return;
      const i = u | 0, j = Math.min(cols - 1, v | 0);
      if (i === j) { acc[i * kinds + kind] += (v - u) * part; return; }
      acc[i * kinds + kind] += (i + 1 - u) * part;
      for (let c = i + 1; c < j; c++) acc[c * kinds + kind] += part;
      acc[j * kinds + kind] += (v - j) * part;
    };
    visit(root, head.runs[run].width, from, to, 1.5 / perPs, (node, d, begin, end, w) => {
      if (w === 0) {
        const a = Math.max(begin, from) - begin, b = Math.min(end, to) - begin;
        let low = 0, hi = d.n;
        while (low < hi) { const mid = (low + hi) >> 1; if (d.at[mid + 1] <= a) low = mid + 1; else hi = mid; }
        for (let i = low; i < d.n && d.at[i] < b; i++) {
          const value = d.value[i] % MERGED;
          if (value === GAP) continue;
          add(begin + Math.max(d.at[i], a), begin + Math.min(d.at[i + 1], b), kindOf(value), 1);
          if (wideOnes && d.length[i] * perPs >= 4) wideOnes.push([begin + d.at[i] - s, begin + d.at[i + 1] - s, value, d, i]);
        }
        return;
      }
      const zero = node.number * BINS * w;
      let low = 0, hi = d.n;
      const firstBin = Math.floor((Math.max(begin, from) - zero) / w), lastBin = Math.ceil((Math.min(end, to) - zero) / w);
      while (low < hi) { const mid = (low + hi) >> 1; if (d.at[mid] < firstBin) low = mid + 1; else hi = mid; }
      for (let i = low; i < d.n && d.at[i] < lastBin; i++) {
        const a = zero + d.at[i] * w;
        add(a, a + w, kindOf(d.value[i]), d.time[i] / w);
      }
    });
    return [acc, cols];
  }
  function stack(acc, cols, kinds, top, height, fill) {  // columns that are alike are one rectangle
    const one = (c) => {  // the kind that fills a column, -1: several, -2: nothing
      let found = -2;
      for (let k = 0; k < kinds; k++) if (acc[c * kinds + k] > 0.004) found = found === -2 && acc[c * kinds + k] > 0.996 ? k : -1;
      return found;
    };
    for (let c = 0; c < cols;) {
      const k = one(c);
      let to = c + 1;
      if (k !== -1) while (to < cols && one(to) === k) to++;
      if (k >= 0) { pen.fillStyle = fill(k); pen.fillRect(gutter + c, top, to - c, height); }
      if (k === -1) {
        let at = top + height;
        for (let m = 0; m < kinds; m++) {
          const part = acc[c * kinds + m] * height;
          if (part <= 0) continue;
          at -= part;
          pen.fillStyle = fill(m);
          pen.fillRect(gutter + c, at, 1, part);
        }
      }
      c = to;
    }
  }
  let shown = [];  // [top, bottom, track, wide calls] of the rows drawn
  let drawn = [];  // messages drawn: [points, message]
  let asked = 0;
  function redraw() { asked ||= requestAnimationFrame(draw); }
  function draw() {
    asked = 0;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, wide, high);
    view.top = scroll.scrollTop;
    shown = [];
    const rowOf = new Map();
    order.forEach((t, row) => {
      const top = y(row), track = tracks[t];
      rowOf.set(t, row);
      if (top > high || top + rowHeight < AXIS) return;
      const calls = track.strip ? Math.max(5, Math.round(rowHeight * 0.3)) : 0, height = rowHeight - 4 - calls, palette = head.palettes[track.palette];
      if (track.lane) {
        const [acc, cols] = columnsOf(track.lane, track.run, (v) => palette.kinds[v], head.kinds.length, null);
        stack(acc, cols, head.kinds.length, top + 1, height, (k) => fills[k]);
      }
      const boxes = [];
      if (track.strip) {
        const [acc, cols] = columnsOf(track.strip, track.run, () => 0, 1, boxes);
        stack(acc, cols, 1, top + 1 + height, calls, () => (dark.matches ? '#59616e' : '#c4c4c4'));
        pen.font = font(calls > 10 ? 11 : 9);
        pen.textBaseline = 'middle';
        for (const [a, b, op] of boxes) {
          const u = Math.max(x(a), gutter), v = Math.min(x(b), wide);
          if (v - u < 3) continue;
          pen.fillStyle = paper; pen.strokeStyle = soft; pen.lineWidth = 1;
          pen.fillRect(u + 0.5, top + 1.5 + height, v - u - 1, calls - 1);
          pen.strokeRect(u + 0.5, top + 1.5 + height, v - u - 1, calls - 1);
          const name = head.ops[op];
          if (calls >= 9 && v - u > pen.measureText(name).width + 5) { pen.fillStyle = ink; pen.textAlign = 'center'; pen.fillText(name, (u + v) / 2, top + 2 + height + calls / 2); }
        }
      }
      shown.push([top, top + rowHeight, t, boxes]);
    });
    messages(rowOf);
    pen.fillStyle = paper;
    pen.fillRect(0, 0, gutter, high);
    pen.fillRect(0, 0, wide, AXIS);
    pen.textBaseline = 'middle';
    pen.textAlign = 'left';
    pen.font = font(rowHeight < 20 ? 11 : 13);
    for (const [top, , t] of shown) {
      if (top < AXIS - rowHeight / 2) continue;
      pen.fillStyle = ink;
      pen.save(); pen.beginPath(); pen.rect(0, AXIS, gutter - 6, high); pen.clip();
      pen.fillText(label(tracks[t]), 2, top + (rowHeight - 4) / 2 + 1);
      pen.restore();
    }
    axis();
    say();
    if (!box.dataset.drawn && shown.some(([, , t]) => tracks[t].lane && kept.get(tracks[t].lane.block))) {
      box.dataset.drawn = String(Math.round(performance.now()));
      box.dispatchEvent(new Event('drawn'));
    }
  }
  const UNITS = [[1e12, 's'], [1e9, 'ms'], [1e6, 'µs'], [1e3, 'ns'], [1, 'ps']];
  function time(ps, digits = 4) {
    const [size, unit] = UNITS.find(([s]) => Math.abs(ps) >= s) ?? UNITS[4];
    return `${Number((ps / size).toPrecision(digits))} ${unit}`;
  }
  function axis() {
    const most = Math.max(2, Math.floor((wide - gutter) / 95)), raw = (view.to - view.from) / most, ten = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * ten).find((k) => k >= raw);
    const [size, unit] = UNITS.find(([s]) => Math.max(Math.abs(view.to), Math.abs(view.from)) >= 2 * s) ?? UNITS[4];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
    pen.font = font(12); pen.textAlign = 'center'; pen.fillStyle = soft; pen.strokeStyle = rule; pen.lineWidth = 1;
    for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
      const at = Math.round(x(k * step)) + 0.5;
      if (at < gutter) continue;
      pen.beginPath(); pen.moveTo(at, AXIS - 5); pen.lineTo(at, AXIS); pen.stroke();
      const words = `${((k * step + head.origin) / size).toFixed(Math.min(digits, 12))} ${unit}`;
      const half = pen.measureText(words).width / 2;
      if (at + half < wide && at - half > gutter - 20) pen.fillText(words, at, AXIS / 2 - 2);
    }
    pen.strokeStyle = soft;
    pen.beginPath(); pen.moveTo(gutter, AXIS - 0.5); pen.lineTo(wide, AXIS - 0.5); pen.stroke();
  }

  // ---- messages

  const MESSAGES = ['source', 'destination', 'tag', 'context', 'bytes', 'line', 'rendezvous'];
  const makeMessages = ({ n, columns: [sent, took, ...rest] }) => {
    for (let i = 1; i < n; i++) sent[i] += sent[i - 1];
    const hops = rest.splice(MESSAGES.length);
    const starts = new Float64Array(n + 1);
    for (let i = 0; i < n; i++) starts[i + 1] = starts[i] + hops[0][i];
    return { n, sent, took, rest, starts, hops: null };
  };
  let unseen = 0;
  function messages(rowOf) {
    drawn = []; unseen = 0;
    if (!lines.checked) return;
    head.runs.forEach((run, r) => {
      const from = view.from + shift[r], to = view.to + shift[r];
      const parts = run.messages.filter(([, , first, last]) => last >= from && first <= to);
      const many = parts.reduce((sum, p) => sum + p[4], 0);
      if (parts.length > 6) { unseen += many; return; }
      let found = [];
      for (const [number, hopNumber] of parts) {
        const m = block(number, makeMessages), h = hopNumber < 0 ? { columns: [] } : block(hopNumber, (got) => got);
        if (!m || !h) continue;
        for (let i = 0; i < m.n; i++) {
          const end = m.took[i] < 0 ? run.span : m.sent[i] + m.took[i];
          if (m.sent[i] <= to && end >= from) found.push([m, i, h, end]);
        }
      }
      if (found.length > 3000) { unseen += found.length; return; }
      pen.lineWidth = found.length > 400 ? 0.6 : 1.2;
      for (const [m, i, h, end] of found) {
        const at = Object.fromEntries(MESSAGES.map((name, k) => [name, m.rest[k][i]]));
        const stops = [[at.source, m.sent[i]]];
        for (let k = m.starts[i]; k < m.starts[i + 1]; k++) stops.push([h.columns[0][k], m.sent[i] + h.columns[1][k]]);
        stops.push([at.destination, end]);
        const points = stops.map(([process, t]) => [x(t - shift[r]), y(rowOf.get(place[r].get(process)) ?? NaN) + (rowHeight - 4) / 2]);
        if (points.some(([, b]) => Number.isNaN(b))) continue;
        const lost = m.took[i] < 0, collective = at.context % 2 === 1;
        pen.strokeStyle = pen.fillStyle = lost ? '#D55E00' : collective ? (dark.matches ? '#e0b050' : '#8a5a00') : ink;
        pen.setLineDash(lost ? [4, 3] : []);
        pen.globalAlpha = found.length > 400 ? 0.45 : 1;
        pen.beginPath();
        points.forEach(([a, b], k) => (k ? pen.lineTo(a, b) : pen.moveTo(a, b)));
        pen.stroke();
        const [px, py] = points[points.length - 2], [qx, qy] = points[points.length - 1], turn = Math.atan2(qy - py, qx - px);
        if (!lost) {
          pen.beginPath(); pen.moveTo(qx, qy);
          for (const side of [-1, 1]) pen.lineTo(qx - 8 * Math.cos(turn + side * 0.4), qy - 8 * Math.sin(turn + side * 0.4));
          pen.fill();
        }
        drawn.push([points, { ...at, run: r, sent: m.sent[i], took: m.took[i], stops }]);
      }
      pen.setLineDash([]); pen.globalAlpha = 1;
    });
  }

  // ---- words

  function say() {
    const at = { from: time(view.from + head.origin, 7), to: time(view.to + head.origin, 7), span: time(view.to - view.from) };
    const many = ngettext('{n} message, drawn when fewer are in view', '{n} messages, drawn when fewer are in view', unseen);
    const words = fill(_('{from} to {to} ({span})'), at) + (unseen ? `; ${fill(many, { n: count(unseen) })}` : '');
    if (told.textContent !== words) told.textContent = words;
  }
  const html = (s) => String(s).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
  const sized = (n) => (n >= 1048576 ? `${Number((n / 1048576).toPrecision(4))} MiB` : n >= 1024 ? `${Number((n / 1024).toPrecision(4))} KiB` : `${n} B`);
  function callWords(t, op, d, i) {
    const [line, peer, tag, bytes, comm, open] = d.detail.map((c) => c[i]);
    const name = head.ops[op], own = ['compute', 'sleep', 'kernel', 'init', 'finalize'].includes(name);
    let words = name;
    if (!own && peer !== -1) {
      const to = name.toLowerCase().includes('send') ? _('{call} to {peer}') : _('{call} with {peer}');
      words = fill(to, { call: name, peer: peer < 0 ? _('any source') : peer });
      if (tag >= 0) words += fill(_(', tag {tag}'), { tag });
    }
    if (!own && bytes > 0) words += `, ${sized(bytes)}`;
    if (comm > 0) words += fill(_(', communicator {comm}'), { comm });
    return `${html(words)}<br>${html(t.file ?? '')}:${line}<br>${time(d.length[i])}${open ? ` (${html(_('had not returned'))})` : ''}`;
  }
  function at(track, root, ps, f) {  // the leaf's interval, or the shares of the bin, at a time of the run
    const width = head.runs[track.run].width, perPs = (wide - gutter) / (view.to - view.from);
    visit(root, width, ps, ps + 1e-6, 1.5 / perPs, (node, d, begin, end, w) => {
      if (w) {
        const zero = node.number * BINS * w, bin = Math.floor((ps - zero) / w), parts = [];
        for (let i = 0; i < d.n; i++) if (d.at[i] === bin) parts.push([d.value[i], d.time[i] / w]);
        f(null, parts, w);
        return;
      }
      for (let i = 0; i < d.n; i++) if (d.at[i] <= ps - begin && ps - begin < d.at[i + 1]) f(d, i, begin);
    });
  }
  function hover(px, py) {
    for (const [points, m] of drawn) {
      if (!points.some(([a, b], k) => (k === 0 || k === points.length - 1) && Math.hypot(a - px, b - py) < 7)) continue;
      const names = m.stops.slice(1, -1).map(([p]) => tracks[place[m.run].get(p)].name);
      const told = [
        sized(m.bytes) + (m.context % 2 ? _(', of a collective') : fill(_(', tag {tag}'), { tag: m.tag })),
        fill(_('sent in line {line}, {time}'), { line: m.line, time: time(m.sent + head.origin, 7) }),
        m.took < 0 ? _('not received') : fill(_('received after {time}'), { time: time(m.took) }),
        ...(names.length ? [fill(_('through {processes}'), { processes: names.join(', ') })] : []), ...(m.rendezvous ? [_('rendezvous')] : []),
      ];
      const ends = [m.source, m.destination].map((process) => html(tracks[place[m.run].get(process)].name)).join(' → ');
      return `<b>${ends}</b>: ${told.map(html).join('<br>')}`;
    }
    const row = shown.find(([top, bottom]) => py >= top && py < bottom);
    if (!row || px < gutter || py < AXIS) return '';
    const track = tracks[row[2]], palette = head.palettes[track.palette], zero = shift[track.run];
    const ps = view.from + (px - gutter) / (wide - gutter) * (view.to - view.from) + zero;
    let words = '';
    if (track.lane) at(track, track.lane, ps, (d, i, begin) => {
      if (d) {
        const value = d.value[i] % MERGED;
        if (value === GAP) return;
        words += `<br>${html(palette.names[value])}: ${time(d.length[i])}<br>${html(fill(_('from {time}'), { time: time(begin + d.at[i] + head.origin, 9) }))}`;
        if (d.value[i] >= MERGED) words += `<br>${html(_('its time in a stretch of shorter states, whose order is not kept'))}`;
      } else {
        words += `<br>${html(fill(_('of {time}:'), { time: time(begin) }))}` + i.sort((a, b) => b[1] - a[1]).slice(0, 6).map(([v, part]) => `<br>${(100 * part).toFixed(1)} % ${html(palette.names[v])}`).join('');
      }
    });
    if (track.strip) at(track, track.strip, ps, (d, i) => { if (d && d.value[i] % MERGED !== GAP) words += fill(`<br>${html(_('in {call}'))}`, { call: callWords(track, d.value[i] % MERGED, d, i) }); });
    const where = track.host ? fill(_('{process} on {host}'), { process: '\0', host: track.host }) : '\0';
    return words ? html(where).replace('\0', `<b>${html(label(track))}</b>`) + words : '';
  }
  function showTip(event) {
    const edge = canvas.getBoundingClientRect(), words = hover(event.clientX - edge.left, event.clientY - edge.top);
    tip.hidden = !words;
    if (!words) return;
    tip.innerHTML = words;
    const own = tip.getBoundingClientRect(), outer = box.getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(event.clientX - outer.left + 14, outer.width - own.width))}px`;
    tip.style.top = `${event.clientY - outer.top + 18}px`;
  }

  // ---- moving

  function zoom(factor, middle = (view.from + view.to) / 2) {
    view.from = middle - (middle - view.from) * factor;
    view.to = middle + (view.to - middle) * factor;
    clamp(); redraw();
  }
  function move(part) {
    const by = (view.to - view.from) * part;
    view.from += by; view.to += by;
    clamp(); redraw();
  }
  const timeAt = (clientX) => view.from + (clientX - canvas.getBoundingClientRect().left - gutter) / (wide - gutter) * (view.to - view.from);
  scroll.addEventListener('wheel', (e) => {
    if (e.shiftKey) return;
    e.preventDefault();
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) move(e.deltaX / 800);
    else zoom(Math.exp(Math.max(-240, Math.min(240, e.deltaY)) / 400), timeAt(e.clientX));
  }, { passive: false });
  const fingers = new Map();
  canvas.addEventListener('pointerdown', (e) => { fingers.set(e.pointerId, e); canvas.setPointerCapture(e.pointerId); tip.hidden = true; });
  for (const kind of ['pointerup', 'pointercancel']) canvas.addEventListener(kind, (e) => fingers.delete(e.pointerId));
  canvas.addEventListener('pointermove', (e) => {
    const before = fingers.get(e.pointerId);
    if (!before) { showTip(e); return; }
    const other = [...fingers.values()].find((f) => f.pointerId !== e.pointerId);
    if (other) {
      const was = Math.abs(before.clientX - other.clientX), is = Math.abs(e.clientX - other.clientX);
      if (was > 8 && is > 8) zoom(was / is, timeAt((e.clientX + other.clientX) / 2));
    } else {
      move((before.clientX - e.clientX) / (wide - gutter));
      if (e.pointerType === 'mouse') scroll.scrollTop += before.clientY - e.clientY;
    }
    fingers.set(e.pointerId, e);
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('dblclick', () => { all(); redraw(); });
  scroll.addEventListener('scroll', redraw);
  const keys = { ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2),
    Home: () => { all(); redraw(); }, ArrowUp: () => { scroll.scrollTop -= rowHeight; }, ArrowDown: () => { scroll.scrollTop += rowHeight; } };
  scroll.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault(); keys[e.key]();
  });
  find('in').onclick = () => zoom(0.5);
  find('out').onclick = () => zoom(2);
  find('all').onclick = () => { all(); redraw(); };
  lines.onchange = redraw;
  const align = find('align'), arrange = find('arrange');
  function arranged() {
    order = tracks.map((_, i) => i);
    if (arrange?.value === 'pairs') {
      const key = (i) => tracks.findIndex((t) => t.name === tracks[i].name);
      order.sort((a, b) => key(a) - key(b) || a - b);
    }
    measure(); redraw();
  }
  if (arrange) arrange.onchange = arranged;
  if (align) align.onchange = () => { head.aligned[align.value].forEach((ps, r) => { shift[r] = ps; }); all(); redraw(); };
  dark.addEventListener('change', () => { inks(); redraw(); });
  addEventListener('resize', () => { measure(); redraw(); });
  new ResizeObserver(() => { if (scroll.clientWidth !== wide) { measure(); redraw(); } }).observe(scroll);

  inks();
  arranged();
  all();
  // For tests and for scripts: the view in ps, its change, and what is at a point.
  box.timeline = { view, show(from, to) { view.from = from; view.to = to; clamp(); redraw(); }, hover, tracks,
    ready: () => new Promise((done) => { const wait = () => { if ([...kept.values()].includes(null) || asked) setTimeout(wait, 20); else done(true); }; redraw(); setTimeout(wait, 30); }),
    shares(t) { const track = tracks[t], palette = head.palettes[track.palette]; const [acc, cols] = columnsOf(track.lane, track.run, (v) => palette.kinds[v], head.kinds.length, null); const sums = head.kinds.map(() => 0); acc.forEach((v, i) => { sums[i % head.kinds.length] += v; }); return sums.map((s) => s / cols); },
    calls: () => shown.flatMap(([, , t, boxes]) => boxes.map(([, , op]) => [tracks[t].name, head.ops[op]])), messages: () => drawn.map(([, m]) => m) };
}
