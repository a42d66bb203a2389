/* What scrolls in itself, a wide table or the output of a notebook, is reached by the keyboard. The theme makes its wrappers while it starts. */
(() => {
  const wide = ".md-typeset__scrollwrap, .md-typeset .output, .md-typeset pre > code";
  const reach = () => document.querySelectorAll(wide).forEach((e) => {
    if (e.scrollWidth > e.clientWidth) e.tabIndex = 0;
    else if (!e.matches("code")) e.removeAttribute("tabindex");
  });
  addEventListener("load", () => {
    reach();
    new ResizeObserver(reach).observe(document.body);
    new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });
  });
})();
