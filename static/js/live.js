// Live fragments: each remembers the ETag of what it shows, so that an unchanged answer (304) touches nothing; a hidden tab asks nothing.
// Refused (409) and incomplete (422) forms come back as pages and are shown like any other answer.
const tags = new Map();

function follow(list, always) {
  if (list && (always || list.dataset.atEnd)) list.scrollTop = list.scrollHeight;
}

// A form that is put in anew under a pressed button would swallow the click: it waits for what the next change asks.
let pressed = null;
document.addEventListener("pointerdown", (event) => { pressed = event.target.closest("button"); });
for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => setTimeout(() => { pressed = null; }));

document.addEventListener("htmx:configRequest", (event) => {
  const { elt, headers, path, verb } = event.detail;
  if (verb !== "get" || !elt.matches("[data-live]")) return;
  // Ticked boxes are a choice that a new fragment would forget.
  if (document.hidden || elt.querySelector("input:checked")) event.preventDefault();
  const tag = tags.get(path);
  if (tag) headers["If-None-Match"] = tag;
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, requestConfig, target } = event.detail;
  if (xhr.status === 304) event.detail.shouldSwap = false;
  if (target.contains(pressed)) {
    event.detail.shouldSwap = false;
    return;
  }
  if (xhr.status === 409 || xhr.status === 422) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  }
  const tag = xhr.getResponseHeader("ETag");
  if (tag && xhr.status === 200) tags.set(requestConfig.path, tag);
  const list = target.closest("[data-tail]");
  if (list) list.dataset.atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 60 ? "yes" : "";
});

// A log that grows stays at its end for a reader who is there; a linked line (#L120) keeps its place.
document.addEventListener("htmx:afterSettle", () => follow(document.querySelector("[data-tail]")));
if (!location.hash) follow(document.querySelector("[data-tail]"), true);
