// Shortcuts: / search, ? this list, g h home, g r runs; a c r q on a request. Each has a link that does the same; the switch in the list turns them off (WCAG 2.1.4).
const dialog = document.getElementById("keys");
const toggle = dialog?.querySelector("[data-keys-switch]");
let leader = -Infinity; // when g was pressed; times count from the page’s load, so 0 would be just now

const stored = () => {
  try {
    return (localStorage.getItem("shortcuts") ?? dialog?.dataset.preferred) !== "off"; // this device's choice, else the person's
  } catch {
    return true; // storage is closed: they work, and the switch holds for this page
  }
};
let on = stored();

function writing(element) {
  return element.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], dialog[open]");
}

function press(event) {
  if (!on || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || writing(event.target)) return;
  if (event.timeStamp - leader < 1500) {
    const address = { h: dialog?.dataset.home, r: dialog?.dataset.runs }[event.key];
    leader = -Infinity;
    if (address) {
      location.assign(address);
      return;
    }
  }
  if (event.key === "g") leader = event.timeStamp;
  if (event.key === "/") {
    const field = document.querySelector("[data-search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  }
  if (event.key === "?") dialog?.showModal();
  const named = /^[acrq]$/.test(event.key) && document.querySelector(`[data-key="${event.key}"]`); // of a request: it goes there, Enter does it
  if (named) {
    event.preventDefault();
    named.focus();
  }
}

if (dialog && toggle) {
  toggle.checked = on;
  toggle.addEventListener("change", () => {
    on = toggle.checked;
    try {
      localStorage.setItem("shortcuts", on ? "on" : "off");
    } catch {
      // Storage is closed: the choice holds for this page.
    }
  });
  for (const opener of document.querySelectorAll("[data-keys-open]")) {
    opener.hidden = false;
    opener.addEventListener("click", () => dialog.showModal());
  }
  document.addEventListener("keydown", press);
}
