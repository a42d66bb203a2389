// What of a page is in no brackets: [place, text] of texts and of the attributes that people read. Data are left out by their elements.
() => {
  const DATA = [
    "[lang=en], script, style, code, kbd, noscript, pre", // what is English says so
    "#studio-languages", // languages are named in themselves
    ".slot .name, .slot .dash-options-list-option, .slot [role=radiogroup], .typed", // parameters, and what they may be
    "[id$='-mode-value'], [id$='-modes-value']", // placements
    "[id^=anatomy-parameters] td, [id^=models-] .v, [id^=platforms-] .v", // values
    "#labs-list, #labs-shown, #labs-lab-value", // labs, which have files of their languages
    "[placeholder]", "datalist", ".kind, .share", // examples; kinds of sources, as filters and files have them
    "#replay-collectives td, #replay-waits td, #replay-cycle td, #replay-ranks-table td", // calls, files and hosts
    "#scorecard-matrix th[scope=row]", // the papers' names of what they measured
  ].join(", ");
  const bare = (text) => {
    for (let before = ""; before !== text;) [before, text] = [text, text.replace(/⟦[^⟦⟧]*⟧/g, " ")];
    return text.trim();
  };
  const left = [];
  let said = 0;
  const see = (e, what, given) => {
    const text = given && e.matches(".stage-key li") && what === "title" ? given.replace(/^[a-z]+: /, "") : given; // the command line's name
    if (!text || e.closest(DATA)) return;
    if (text.includes("⟦")) said += 1;
    if (/[A-Za-z]{3,}/.test(bare(text))) left.push([`${e.closest("[id]") ? e.closest("[id]").id : ""} ${e.tagName} ${what}`, bare(text)]);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) see(texts.currentNode.parentElement, "text", texts.currentNode.data);
  for (const e of document.querySelectorAll("*")) for (const a of ["aria-label", "title", "placeholder", "alt", "aria-valuetext"]) see(e, a, e.getAttribute(a));
  return { said, left };
}
