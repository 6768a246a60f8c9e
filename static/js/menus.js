// Menus are <details> and open without a script; with it, one is open at a time and Escape or a click elsewhere closes it.
function close(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu !== except) menu.open = false;
  }
}

document.addEventListener("click", (event) => {
  close(event.target.closest("details.menu"));
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = event.target.closest?.("details.menu[open]");
  close();
  menu?.querySelector("summary").focus();
});
