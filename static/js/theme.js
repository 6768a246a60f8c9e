// Light, dark or as the device asks: kept in a cookie of this device, so that the server draws the next page right at once.
const root = document.documentElement;

function show() {
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === root.dataset.theme));
  }
}

for (const group of document.querySelectorAll("[data-themes]")) {
  group.hidden = false;
  group.addEventListener("click", (event) => {
    const choice = event.target.closest("[data-theme-choice]")?.dataset.themeChoice;
    if (!choice) return;
    root.dataset.theme = choice;
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `theme=${choice}; path=/; max-age=31536000; samesite=lax${secure}`;
    show();
  });
}
show();
