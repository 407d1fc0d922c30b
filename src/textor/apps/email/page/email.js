// What live.js does not do for an email: attaching by hand, and a sent email that is only read.
import { act, onState, valueAt } from "/static/live.js";

const file = document.getElementById("file");

file.addEventListener("change", async () => {
  for (const one of file.files) {
    const bytes = new Uint8Array(await one.arrayBuffer());
    let binary = "";
    for (let at = 0; at < bytes.length; at += 32768) binary += String.fromCharCode(...bytes.subarray(at, at + 32768));
    await act("attachment", { name: one.name, data: btoa(binary), type: one.type });
  }
  file.value = "";
});

const size = (bytes) => (bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

onState((state) => {
  for (const id of ["subject", "body"]) document.getElementById(id).readOnly = Boolean(state.sent);
  for (const shown of document.querySelectorAll("[data-size]")) {
    shown.textContent = size(valueAt(state, `${shown.closest("[data-item]").dataset.item}.size`));
  }
});
