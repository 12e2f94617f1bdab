// Line charts of the last five minutes.
import {svg} from "./view.js";

const WIDTH = 600;
const HEIGHT = 100;
export const SPAN = 300;  // Seconds.

// The next of 1, 2, 5, 10, ... times 1024^n.
function ceiling(value) {
  let unit = 1;
  while (value / unit >= 1000) unit *= 1024;
  for (let step = unit; ; step *= 10) {
    for (const n of [1, 2, 5]) if (n * step >= value) return n * step;
  }
}

function line(points, now, top) {
  let path = "";
  for (const [time, value] of points) {
    const x = WIDTH * (1 - (now - time) / SPAN);
    if (x < 0) continue;
    const y = HEIGHT * (1 - value / top);
    path += `${path ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
  }
  return path;
}

// `series`: [{name, kind, points: [[unix seconds, value]...]}]. `format` writes
// a value. The chart's description has the newest ones.
export class Chart {
  constructor(title, series, format, top = 0) {
    this.title = title;
    this.series = series;
    this.format = format;
    this.top = top;
    this.figure = document.createElement("figure");
    const heading = document.createElement("h3");
    heading.textContent = title;
    this.legend = document.createElement("ul");
    this.legend.className = "legend";
    for (const s of series) this.legend.append(this.entry(s));
    this.chart = svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
                             preserveAspectRatio: "none"});
    for (const y of [0, HEIGHT / 2, HEIGHT]) {
      this.chart.append(svg("line", {class: "grid", x1: 0, x2: WIDTH, y1: y,
                                     y2: y}));
    }
    for (const s of series) {
      s.path = svg("path", {class: s.kind});
      this.chart.append(s.path);
    }
    this.ends = document.createElement("div");
    this.ends.className = "ends";
    this.ends.setAttribute("aria-hidden", "true");
    this.figure.append(heading, this.legend, this.chart, this.ends);
  }

  entry(s) {
    const item = document.createElement("li");
    const sign = svg("svg", {viewBox: "0 0 22 8", "aria-hidden": "true"});
    sign.append(svg("path", {class: s.kind, d: "M0 4L22 4",
                             "stroke-width": 2}));
    s.now = document.createElement("b");
    item.append(sign, `${s.name} `, s.now);
    return item;
  }

  draw(now) {
    const visible = s => s.points.filter(([time]) => time >= now - SPAN);
    const most = Math.max(
        1, ...this.series.flatMap(s => visible(s).map(p => p[1])));
    const top = Math.max(this.top, ceiling(most));
    const words = [];
    for (const s of this.series) {
      s.path.setAttribute("d", line(s.points, now, top));
      const last = s.points.length ? s.points.at(-1)[1] : 0;
      s.now.textContent = this.format(last);
      words.push(`${s.name} ${this.format(last)}`);
    }
    this.chart.setAttribute(
        "aria-label", `${this.title}, last five minutes; now ${words.join(", ")}`);
    this.ends.replaceChildren(
        text("5 min ago"), text(`top line: ${this.format(top)}`), text("now"));
  }
}

function text(words) {
  const span = document.createElement("span");
  span.textContent = words;
  return span;
}
