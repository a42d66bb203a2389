/* Reports immediately that a file is too large: the browser side of dcc.Upload refuses it silently. */
"use strict";
(function () {
  const { _, fill } = window.retrompiWords;
  function check(event, files) {
    const row = event.target.closest && event.target.closest(".upload-row");
    if (!row || !files || !files.length) return;
    const most = Number(row.dataset.most), file = files[0];
    const text = file.size > most
      ? fill(_("{file} has {size} MiB; the most that can be uploaded is {most} MiB{advice}"), {
        file: file.name.slice(0, 60), size: (file.size / 1048576).toFixed(1), most: (most / 1048576).toFixed(0), advice: row.dataset.advice || "",
      })
      : "";
    const where = row.nextElementSibling;
    if (window.dash_clientside && window.dash_clientside.set_props && where) window.dash_clientside.set_props(where.id, { children: text });
  }
  document.addEventListener("change", (event) => check(event, event.target.files), true);
  document.addEventListener("drop", (event) => check(event, event.dataTransfer && event.dataTransfer.files), true);
})();
