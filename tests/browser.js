// What tests/browser.py asks of a page that is drawn. Loaded into every page of the tests, never into the studio.
window.looked = {
  // Whether the document was loaded, and its scripts once had no request under way for half a second.
  rested: false,
  // No job of the page is under way and no figure waits to be drawn.
  settled() {
    const busy = [...document.querySelectorAll('.job .cancel')].some((e) => e.checkVisibility());
    return !busy && !document.querySelector('[data-dash-is-loading="true"]');
  },

  // What sticks out of the page to the right, outside of what scrolls by itself.
  overflow() {
    const wide = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= wide) return [];
    const inside = (e) => {
      for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
        if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(p).overflowX)) return true;
      }
      return false;
    };
    const out = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > wide + 1 && !inside(e));
    return [`${document.documentElement.scrollWidth} px`, ...out.slice(0, 5).map((e) => this.name(e))];
  },

  name(e) {
    const classes = e.className && e.className.baseVal === undefined ? `.${e.className}` : '';
    return `${e.tagName.toLowerCase()}${e.id ? `#${e.id}` : ''}${classes}`;
  },

  // Texts whose contrast with what is behind them is below WCAG 2 AA, computed as the standard says.
  contrast() {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const pen = canvas.getContext('2d', { willReadFrequently: true });
    const rgba = (text) => {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = 'rgb(0 0 0 / 0)';
      pen.fillStyle = text;
      pen.fillRect(0, 0, 1, 1);
      const d = pen.getImageData(0, 0, 1, 1).data;
      return [d[0], d[1], d[2], d[3] / 255];
    };
    const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat([1]);
    const part = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    const ground = (e) => {
      const layers = [];
      for (let p = e; p; p = p.parentElement) {
        const style = getComputedStyle(p);
        const c = rgba(style.backgroundColor);
        if (c[3] > 0) layers.push(c);
        if (c[3] === 1) break;
      }
      return layers.reverse().reduce((below, c) => over(c, below), [255, 255, 255, 1]);
    };
    const behind = (text) => {  // in a drawing, the last filled shape below the text that covers its middle
      const box = text.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
      let found = ground(text);
      // Of a heat map's picture no colour can be read; Plotly chooses its letters' by the field's.
      for (const image of text.ownerSVGElement.querySelectorAll('image')) {
        const b = image.getBoundingClientRect();
        if (x >= b.left && x <= b.right && y >= b.top && y <= b.bottom) return null;
      }
      for (const shape of text.ownerSVGElement.querySelectorAll('rect, path, circle, polygon, ellipse')) {
        if (shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_PRECEDING) continue;
        if (shape.closest('defs, clipPath')) continue;
        const style = getComputedStyle(shape), b = shape.getBoundingClientRect();
        if (style.fill === 'none' || x < b.left || x > b.right || y < b.top || y > b.bottom) continue;
        if (shape.tagName === 'path' && !this.covers(shape, x, y)) continue;
        const c = rgba(style.fill);
        c[3] *= parseFloat(style.fillOpacity) * parseFloat(style.opacity);
        found = over(c, found);
      }
      return found;
    };
    const out = [], said = new Set();
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let n = walk.nextNode(); n; n = walk.nextNode()) {
      const e = n.parentElement, text = n.textContent.trim();
      if (!text || !e || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'TITLE', 'OPTION'].includes(e.tagName)) continue;
      const box = e.getBoundingClientRect(), style = getComputedStyle(e);
      if (!box.width || !box.height || !e.checkVisibility({ visibilityProperty: true })) continue;
      if (e.closest('[disabled], [aria-disabled=true], [aria-hidden=true]')) continue;  // WCAG 1.4.3 leaves inactive controls out
      let alpha = 1;
      for (let p = e; p; p = p.parentElement) alpha *= parseFloat(getComputedStyle(p).opacity);
      if (alpha < 0.05) continue;
      const svg = e instanceof SVGElement, back = svg && e.ownerSVGElement ? behind(e) : ground(e);
      if (!back) continue;
      const ink = rgba(svg ? style.fill : style.color);
      ink[3] *= alpha * (svg ? parseFloat(style.fillOpacity) : 1);
      const [a, b] = [light(over(ink, back)), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
      const px = parseFloat(style.fontSize), large = px >= 24 || (px >= 18.66 && parseFloat(style.fontWeight) >= 700);
      const key = `${this.name(e)} ${svg ? style.fill : style.color}`;
      if (ratio < (large ? 3 : 4.5) - 0.005 && !said.has(key)) {
        said.add(key);
        out.push(`${ratio.toFixed(2)} (needs ${large ? 3 : 4.5}): "${text.slice(0, 40)}" in ${this.name(e)}`);
      }
    }
    return out;
  },

  covers(shape, x, y) {
    const point = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
    return shape.isPointInFill(point);
  },

  // What has the focus: what it is, its accessible name, whether one sees it; null where nothing has.
  focused() {
    const e = document.activeElement;
    if (!e || e === document.body || e === document.documentElement) return null;
    const by = (e.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean).map((i) => document.getElementById(i)?.textContent || '');
    const labels = [...(e.labels || [])].map((l) => l.textContent);
    const inner = e.tagName === 'INPUT' ? '' : e.textContent || e.querySelector('[aria-label]')?.getAttribute('aria-label') || '';
    const names = [e.getAttribute('aria-label'), by.join(' '), labels.join(' '), e.closest('label')?.textContent, inner, e.title];
    const ring = (x) => {
      const s = x && getComputedStyle(x);
      return Boolean(x) && ((s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1) || s.boxShadow !== 'none');
    };
    const box = e.getBoundingClientRect();
    return {
      what: this.name(e), name: (names.find((n) => n && n.trim()) || '').trim().slice(0, 80),
      ring: ring(e) || ring(e.parentElement), seen: box.width > 0 && box.height > 0 && e.checkVisibility({ visibilityProperty: true }),
      walked: e.dataset.walked || '', id: e.id, role: e.getAttribute('role') || e.tagName.toLowerCase(),
    };
  },

  // What one can act on by a pointer and must reach by the keyboard.
  controls() {
    const all = document.querySelectorAll('#studio :is(a[href], button, input, select, textarea, summary, [role=slider], [role=combobox])');
    // Whatever its tabindex says: a control that is seen and cannot be reached is what this is to find. Dash's dropdown has a hidden
    // input beside its button, which screen readers are not told of.
    return [...all].filter((e) => e.ariaHidden !== 'true' && !e.disabled && e.type !== 'hidden' && e.checkVisibility({ visibilityProperty: true })
      && e.getBoundingClientRect().width > 0).map((e) => this.name(e));
  },

  // The data of a figure as Plotly has it.
  traces(id) {
    const graph = document.getElementById(id)?.querySelector('.js-plotly-plot');
    return graph?.data?.map((t) => ({ name: t.name ?? '', x: Array.from(t.x ?? []), y: Array.from(t.y ?? []), type: t.type ?? '' })) ?? null;
  },
};

{
  let open = 0, since = performance.now();
  const count = (by) => { open += by; since = performance.now(); };
  const fetched = window.fetch;
  window.fetch = function (...given) {
    count(1);
    return fetched.apply(this, given).finally(() => count(-1));
  };
  const watch = setInterval(() => {
    if (document.readyState !== 'complete') since = performance.now();
    else if (!open && performance.now() - since > 500) {
      window.looked.rested = true;
      clearInterval(watch);
    }
  }, 50);
}
