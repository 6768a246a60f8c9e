// Menus are <details> and open without a script; with it, one is open at a time and Escape or a click elsewhere closes it.
// [data-dialog="id"] opens that <dialog>; its link or form works as it is when there is no script.
function close(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu !== except) menu.open = false;
  }
}

document.addEventListener("click", (event) => {
  close(event.target.closest("details.menu"));
  const dialog = document.getElementById(event.target.closest("[data-dialog]")?.dataset.dialog ?? "");
  if (dialog instanceof HTMLDialogElement) {
    event.preventDefault();
    dialog.showModal();
  }
  if (event.target.closest("[data-dialog-close]")) event.target.closest("dialog")?.close();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = event.target.closest?.("details.menu[open]");
  close();
  menu?.querySelector("summary").focus();
});
