// Live fragments: each remembers the ETag of what it shows, so that an unchanged answer (304) touches nothing; a hidden tab asks nothing.
// Refused (409) and incomplete (422) forms come back as pages and are shown like any other answer.
const tags = new Map();

document.addEventListener("htmx:configRequest", (event) => {
  const { elt, headers, path, verb, triggeringEvent } = event.detail;
  if (verb !== "get" || !elt.matches("[data-live]")) return;
  if (document.hidden && !triggeringEvent) event.preventDefault();
  const tag = tags.get(path);
  if (tag) headers["If-None-Match"] = tag;
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, requestConfig } = event.detail;
  if (xhr.status === 304) event.detail.shouldSwap = false;
  if (xhr.status === 409 || xhr.status === 422) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  }
  const tag = xhr.getResponseHeader("ETag");
  if (tag && xhr.status === 200) tags.set(requestConfig.path, tag);
});

// A log that grows stays at its end for a reader who is there; a linked line (#L120) keeps its place.
function follow(list, force) {
  if (list && (force || list.scrollHeight - list.scrollTop - list.clientHeight < 80)) list.scrollTop = list.scrollHeight;
}

document.addEventListener("htmx:afterSettle", (event) => follow(event.detail.target?.closest?.("[data-tail]")));
if (!location.hash) follow(document.querySelector("[data-tail]"), true);
