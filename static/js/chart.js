// The cursor of line charts: one position shared by all charts of the page that have the same x axis. Values are read back
// from the drawn curve, so they are as fine as a pixel and are written with "≈"; exact ones stand in the table.
const STEP = /[ML](-?[\d.]+) (-?[\d.]+)/g; // the "h0" of lone points is no point
const curves = new WeakMap();

function points(path) {
  if (!curves.has(path)) {
    curves.set(path, Array.from(path.getAttribute("d").matchAll(STEP), ([, x, y]) => [Number(x), Number(y)]));
  }
  return curves.get(path);
}

function nearest(list, x) {
  let low = 0;
  let high = list.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (list[middle][0] < x) low = middle;
    else high = middle;
  }
  return x - list[low]?.[0] < list[high]?.[0] - x ? list[low] : list[high];
}

function words(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e7) ? value.toExponential(2) : Number(value.toPrecision(4)).toLocaleString("en");
}

function read(chart, share) {
  const { x0, x1, y0, y1, height, log } = chart.dataset;
  const value = (down) => {
    const at = Number(y1) + (Number(y0) - Number(y1)) * down;
    return log === "true" ? 10 ** at : at;
  };
  const parts = [];
  for (const path of chart.querySelectorAll("[data-series]")) {
    const list = points(path);
    if (!list.length) continue;
    const [, y] = nearest(list, share * 1000);
    parts.push(`${path.dataset.series} ≈ ${words(value(y / Number(height)))}`);
  }
  const x = Number(x0) + (Number(x1) - Number(x0)) * share;
  chart.querySelector("[data-reading]").textContent = `${chart.dataset.x} ${words(Math.round(x))}: ${parts.join(" · ")}`;
}

function move(event) {
  const chart = event.target.closest?.("[data-chart]");
  for (const other of document.querySelectorAll("[data-chart]")) {
    const same = chart && other.dataset.x === chart.dataset.x && other.dataset.x0 === chart.dataset.x0 && other.dataset.x1 === chart.dataset.x1;
    const cursor = other.querySelector("[data-cursor]");
    if (!same) {
      cursor.setAttribute("visibility", "hidden");
      other.querySelector("[data-reading]").textContent = other.dataset.x;
      continue;
    }
    const box = chart.querySelector(":scope > svg").getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    cursor.setAttribute("x1", `${share * 100}%`);
    cursor.setAttribute("x2", `${share * 100}%`);
    cursor.setAttribute("visibility", "visible");
    read(other, share);
  }
}

document.addEventListener("pointermove", move, { passive: true });
document.addEventListener("pointerleave", move, { passive: true });
