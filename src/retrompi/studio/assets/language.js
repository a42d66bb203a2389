/* The language switch: its links keep the page and its state, which is in the address. */
"use strict";
document.addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest("#studio-languages a[hreflang]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  event.stopPropagation();
  const address = new URL(window.location.href);
  address.searchParams.set("lang", link.hreflang);
  window.location.assign(address.href);
}, true);
