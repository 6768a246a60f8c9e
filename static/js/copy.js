// <button data-copy="text" hidden>: shown only where the clipboard can be used, says what it did in its own label.
function reveal(scope) {
  if (!navigator.clipboard) return;
  for (const button of scope.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const label = button.getAttribute("aria-label");
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.setAttribute("aria-label", "Copied");
    button.dataset.copied = "";
  } catch {
    button.setAttribute("aria-label", "The browser did not allow copying");
  }
  setTimeout(() => {
    button.setAttribute("aria-label", label);
    delete button.dataset.copied;
  }, 1600);
});
document.addEventListener("htmx:load", (event) => reveal(event.target));
reveal(document);
