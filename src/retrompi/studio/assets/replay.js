/* Reports immediately that a file is too large: the browser side of dcc.Upload refuses it silently. */
"use strict";
(function () {
  function check(event, files) {
    const row = event.target.closest && event.target.closest(".upload-row");
    if (!row || !files || !files.length) return;
    const most = Number(row.dataset.most), file = files[0];
    const text = file.size > most
      ? `${file.name.slice(0, 60)} has ${(file.size / 1048576).toFixed(1)} MiB; the most that can be uploaded is ${(most / 1048576).toFixed(0)} MiB${row.dataset.advice || ""}`
      : "";
    const where = row.nextElementSibling;
    if (window.dash_clientside && window.dash_clientside.set_props && where) window.dash_clientside.set_props(where.id, { children: text });
  }
  document.addEventListener("change", (event) => check(event, event.target.files), true);
  document.addEventListener("drop", (event) => check(event, event.dataTransfer && event.dataTransfer.files), true);
})();
