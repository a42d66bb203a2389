/* Before anything is painted: light or dark, and the projector's large letters, as this browser was last told. */
"use strict";
(function () {
  const root = document.documentElement;
  try {
    const theme = localStorage.getItem("retrompi-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    if (localStorage.getItem("retrompi-projector") === "1") root.dataset.projector = "1";
  } catch (error) { /* a browser that keeps nothing follows the system */ }
})();
/* The words of all scripts: a dictionary of what they say stands in the head of a page that is not in English (studio/app.py). */
(function () {
  const given = document.getElementById("studio-words");
  window.retrompiWords = retrompiWordsOf(given ? JSON.parse(given.textContent) : {});
})();
