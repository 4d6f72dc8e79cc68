// A plot as SVG, for files: the same data without the library that draws the page.

const space = "http://www.w3.org/2000/svg", wide = 720, high = 300, left = 64, right = 12, top = 34, bottom = 34;

function part(name, attributes, text) {
  const node = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function ticks(low, high_, count) {
  const raw = (high_ - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const out = [];
  for (let x = Math.ceil(low / step) * step; x <= high_ + step * 1e-9; x += step) out.push(Number(x.toPrecision(12)));
  return out;
}

// series: [{label, color, points: [[x, low, mean, high], ...]}]
export function plotSvg(title, unit, series, logarithmic, colors) {
  const all = series.flatMap((s) => s.points), usable = (v) => Number.isFinite(v) && (!logarithmic || v > 0);
  const values = all.flatMap((p) => p.slice(1)).filter(usable), steps = all.map((p) => p[0]);
  const scale = logarithmic ? Math.log10 : (v) => v;
  let low = scale(values.reduce((a, b) => Math.min(a, b), Infinity)), up = scale(values.reduce((a, b) => Math.max(a, b), -Infinity));
  if (!Number.isFinite(low)) low = 0, up = 1;
  if (low === up) low -= 0.5, up += 0.5;
  const first = steps.reduce((a, b) => Math.min(a, b), Infinity), last = steps.reduce((a, b) => Math.max(a, b), -Infinity);
  const x = (s) => left + ((s - first) / (last - first || 1)) * (wide - left - right);
  const y = (v) => high - bottom - ((scale(v) - low) / (up - low)) * (high - top - bottom);
  const svg = part("svg", { xmlns: space, width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, "font-family": "sans-serif", "font-size": 12 });
  svg.append(part("rect", { width: wide, height: high, fill: colors.background }));
  svg.append(part("text", { x: left, y: 18, fill: colors.ink, "font-weight": "bold" }, title + (unit ? " (" + unit + ")" : "")));
  for (const v of ticks(low, up, 5)) {
    const at = high - bottom - ((v - low) / (up - low)) * (high - top - bottom);
    svg.append(part("line", { x1: left, x2: wide - right, y1: at, y2: at, stroke: colors.line }));
    const label = logarithmic ? (10 ** v).toPrecision(2) : String(v);
    svg.append(part("text", { x: left - 6, y: at + 4, "text-anchor": "end", fill: colors.soft }, label));
  }
  for (const s of Number.isFinite(first) ? ticks(first, last, 6) : [])
    svg.append(part("text", { x: x(s), y: high - bottom + 18, "text-anchor": "middle", fill: colors.soft }, String(s)));
  for (const s of series) {
    const points = s.points.filter((p) => usable(p[2]));
    if (points.length === 0) continue;
    const line = (pick, list) => list.map((p) => x(p[0]).toFixed(1) + "," + y(usable(p[pick]) ? p[pick] : p[2]).toFixed(1)).join(" ");
    svg.append(part("polygon", { points: line(3, points) + " " + line(1, [...points].reverse()), fill: s.color, "fill-opacity": 0.18 }));
    svg.append(part("polyline", { points: line(2, points), fill: "none", stroke: s.color, "stroke-width": 1.5 }));
  }
  let at = wide - right;
  for (const s of series.length > 1 ? [...series].reverse() : []) {
    svg.append(part("text", { x: at, y: 18, "text-anchor": "end", fill: s.color }, s.label));
    at -= 8 * s.label.length + 16;
  }
  return new XMLSerializer().serializeToString(svg);
}

// rows: [{label, colors: [colour or null, ...]}]; neighbouring cells of one colour are one rectangle.
export function mapSvg(title, rows, steps, colors) {
  const row = 14, labels = 190, columns = rows[0].colors.length, cell = (wide - labels - right) / columns, all = top + rows.length * row + bottom;
  const svg = part("svg", { xmlns: space, width: wide, height: all, viewBox: `0 0 ${wide} ${all}`, "font-family": "sans-serif", "font-size": 11 });
  svg.append(part("rect", { width: wide, height: all, fill: colors.background }), part("text", { x: 6, y: 18, fill: colors.ink, "font-weight": "bold" }, title));
  rows.forEach((r, i) => {
    svg.append(part("text", { x: labels - 6, y: top + (i + 0.8) * row, "text-anchor": "end", fill: colors.soft }, r.label));
    for (let c = 0, next; c < columns; c = next) {
      for (next = c + 1; next < columns && r.colors[next] === r.colors[c]; ) ++next;
      if (r.colors[c]) svg.append(part("rect", { x: (labels + c * cell).toFixed(2), y: top + i * row, width: ((next - c) * cell + 0.3).toFixed(2), height: row, fill: r.colors[c] }));
    }
  });
  svg.append(part("text", { x: labels, y: all - bottom + 16, fill: colors.soft }, "step " + steps[0]));
  svg.append(part("text", { x: wide - right, y: all - bottom + 16, "text-anchor": "end", fill: colors.soft }, String(steps[1])));
  return new XMLSerializer().serializeToString(svg);
}

export function svgToPng(text) {
  return new Promise((done, fail) => {
    const image = new Image(), address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    image.onerror = () => fail(new Error("the browser cannot draw the plot"));
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * wide, canvas.height = 2 * high;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(address);
      canvas.toBlob(done, "image/png");
    };
    image.src = address;
  });
}
