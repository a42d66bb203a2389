/* Dash's dropdowns name themselves by their value alone, its radio buttons and sliders by nothing: whoever hears the page has to hear the
   label of the field as well. */
(() => {
  const name = () => {
    for (const label of document.querySelectorAll('.field > label[for]:not([data-named])')) {
      const target = document.getElementById(label.htmlFor);
      if (!target) continue;
      label.id ||= `${label.htmlFor}-label`;
      label.dataset.named = '1';
      if (target.matches('button.dash-dropdown')) {
        target.setAttribute('aria-labelledby', `${label.id} ${target.getAttribute('aria-labelledby') || ''}`.trim());
      } else if (label.control === null) {
        target.setAttribute('role', target.getAttribute('role') || 'group');
        target.setAttribute('aria-labelledby', label.id);
      }
      const own = target.closest('.field').querySelectorAll('[role=slider]:not([aria-label]):not([aria-labelledby]), input:not([type=radio])');
      for (const part of own) {
        if (!part.labels?.length && !part.ariaLabel && part.ariaHidden !== 'true') part.setAttribute('aria-labelledby', label.id);
      }
    }
  };
  let due = false;
  new MutationObserver(() => {
    if (!due) requestAnimationFrame(() => { due = false; name(); });
    due = true;
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
