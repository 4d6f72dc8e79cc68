// Elements and numbers. Text of runs becomes text nodes, never markup.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

export const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Four significant digits, none for a missing number.
export function short(x, digits = 4) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e6 || size < 1e-3) return x.toExponential(Math.max(digits - 2, 1));
  if (size >= 1000) return Math.round(x).toLocaleString("en");
  return String(Number(x.toPrecision(digits)));
}

// Five significant digits, also where the last are 0: losses stand in columns.
export const loss = (x) => (Number.isFinite(x) && Math.abs(x) >= 1e-3 && Math.abs(x) < 1000 ? x.toPrecision(5) : short(x, 5));

// Three significant digits with a prefix of the SI: 6.03 M.
export function prefixed(x) {
  const power = Math.min(Math.max(Math.floor(Math.log10(x) / 3 + 1e-9), 0), 5);
  return Number.isFinite(power) ? Number((x / 1000 ** power).toPrecision(3)) + " " + ["", "k", "M", "G", "T", "P"][power] : short(x, 3);
}

export const whole = (x) => (x === null || x === undefined ? "–" : x.toLocaleString("en"));
export const percent = (x, digits = 3) => (x === null || x === undefined ? "–" : short(100 * x, digits) + "%");

export function bytes(x) {
  if (x === null || x === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (x >= 1024 && i + 1 < units.length) x /= 1024, ++i;
  return short(x, 3) + " " + units[i];
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const s = Math.max(0, Math.round(seconds)), pad = (x) => String(x).padStart(2, "0");
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + pad(s % 60) + " s";
  if (s < 172800) return Math.floor(s / 3600) + " h " + pad(Math.floor((s % 3600) / 60)) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
}

// kind "stack": on narrow screens a row is a block whose last cell has a line of its own; "narrow": on wide ones columns stay close.
export function table(heads, rows, kind = null) {
  const head = (h) => el("th", { class: h.number ? "number" : h.wide ? "wide" : null, scope: "col" }, h.name ?? h);
  return el("div", { class: "scroll" }, el("table", { class: kind }, el("thead", {}, el("tr", {}, heads.map(head))), el("tbody", {}, rows)));
}

export function row(cells, attributes = {}) {
  return el("tr", attributes, cells.map((c) => (c instanceof Node && c.tagName === "TD" ? c : el("td", {}, c))));
}

export const number = (text, marked = false) => el("td", { class: "number" + (marked ? " marked" : "") }, text);

// A spreadsheet must not read a cell of a run's text as a formula.
export function csvCell(value) {
  let text = value === null || value === undefined ? "" : String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

export function save(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name.replace(/[^\w.-]+/g, "_") });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
