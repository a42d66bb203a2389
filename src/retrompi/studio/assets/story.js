/* The front page's story: the curve follows the finger, drawn from the table of runs that came with the page (studio/curves/story.py). */
"use strict";
window.dash_clientside = window.dash_clientside || {};
(function () {
  const { _, fill } = window.retrompiWords;
  let told = null;
  let guessed = "";

  const here = (id) => document.getElementById(id);
  const input = (id) => { const e = here(id); return e && (e.matches("input") ? e : e.querySelector("input")); };
  const place = (id, given) => { const e = input(id); return e ? Number(e.value) : given; };
  const size = (bytes) => (bytes >= 1048576 ? `${bytes / 1048576} MiB` : `${bytes / 1024} KiB`);
  const rate = (value) => `${Number(value.toPrecision(3))} MB/s`;

  /* The last size before the largest fall of a curve. */
  function cliff(rates) {
    let at = 0;
    for (let i = 0; i + 1 < rates.length; ++i) {
      if (rates[i + 1] === null) return i; /* the job was aborted there */
      if (rates[i + 1] / rates[i] < rates[at + 1] / rates[at]) at = i;
    }
    return at;
  }
  function draw() {
    const box = here("start-figure");
    if (!told || !box || !window.retrompiSketch) return;
    const [packet, quantum] = [place("start-packet", told.begin[0]), place("start-quantum", told.begin[1])];
    const before = told.rates[told.begin[0]][told.begin[1]], now = told.rates[packet][quantum];
    const shown = guessed ? now : now.slice(0, told.last + 1);
    const ink = getComputedStyle(document.documentElement);
    const data = [];
    if (guessed && now !== before) data.push({ x: told.sizes, y: before, mode: "lines", line: { color: ink.getPropertyValue("--soft").trim() || "#777", dash: "dash", width: 2 } });
    data.push({ x: told.sizes.slice(0, shown.length), y: shown, mode: "lines+markers", line: { color: "#0072B2", width: 2.5 }, marker: { size: 6 } });
    if (guessed) data.push({ x: told.stars.map((s) => s[0]), y: told.stars.map((s) => s[1]), mode: "markers", marker: { symbol: "star", size: 14, color: "#D55E00" } });
    window.retrompiSketch.draw(box, { data, layout: told.layout });
    for (const [name, texts, i] of [["packet", told.packets, packet], ["quantum", told.quanta, quantum]]) {
      const said = here(`start-${name}-said`), range = input(`start-${name}`);
      if (said) said.textContent = texts[i];
      if (range) range.setAttribute("aria-valuetext", texts[i]);
    }
    say(now, packet, quantum);
  }
  function say(now, packet, quantum) {
    const said = here("start-said");
    if (!said || !guessed) return;
    const at = cliff(now), far = told.last + 2, less = Number((now[told.last] / now[far]).toPrecision(2));
    const moved = packet !== told.begin[0] || quantum !== told.begin[1];
    const lost = now[at + 1] === null;
    const numbers = { at: size(told.sizes[at]), next: size(told.sizes[at + 1]), high: rate(now[at]), low: lost ? "" : rate(now[at + 1]), packet: told.packets[packet], quantum: told.quanta[quantum] };
    said.textContent = lost
      ? fill(_("Packets of {packet}, a turn of {quantum}: above {at} the shared memory is full, and the job is aborted."), numbers)
      : moved
      ? fill(_("Packets of {packet}, a turn of {quantum}: the cliff is above {at}, from {high} to {low} at {next}."), numbers)
      : fill(guessed === right(less) ? _("Right: {high} at {at}, {far} at {size}, {less} times less.") : _("Not so: {high} at {at}, {far} at {size}, {less} times less."),
        { high: rate(now[told.last]), at: size(told.sizes[told.last]), far: rate(now[far]), size: size(told.sizes[far]), less });
  }
  const right = (less) => (less < 1.2 ? "same" : less < 3 ? "half" : "far");

  window.retrompiFinger.follow("#start-packet, #start-quantum", draw);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-guess]");
    if (button) {
      guessed = button.dataset.guess;
      for (const b of document.querySelectorAll("[data-guess]")) b.setAttribute("aria-pressed", String(b === button));
      here("start-after").hidden = false;
      draw();
    } else if (event.target.closest("#start-reset") && told) {
      for (const [i, name] of ["start-packet", "start-quantum"].entries()) window.dash_clientside.set_props(name, { value: told.begin[i] });
    }
  });

  window.dash_clientside.retrompi_story = {
    begin: function (story, packet, quantum) {
      if (!story) return [window.dash_clientside.no_update, window.dash_clientside.no_update];
      if (told !== story) { told = story; guessed = ""; }
      requestAnimationFrame(draw);
      const [p, q] = [Number(packet), Number(quantum)];
      const set = (name, text) => ["set", encodeURIComponent([name, text].join("="))].join("=");
      const sets = [...(p === story.begin[0] ? [] : [set("wmpi.packet", story.packets[p])]), ...(q === story.begin[1] ? [] : [set("platform.host.quantum", story.quanta[q])])];
      const rates = story.rates[p][q], at = cliff(rates);
      return [{ packet: p, quantum: q, size: story.sizes[rates[at + 1] === null ? at : at + 1] }, sets.length ? ["/whatif", sets.join("&")].join("?") : "/whatif"];
    },
  };
})();
