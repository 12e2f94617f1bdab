// Devices: memory maps and curves.
import {bytes, colour, MODES, rate} from "./format.js";
import {Chart, SPAN} from "./curves.js";

const WIDTH = 1000;
const HEIGHT = 46;

export function svg(name, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    node.setAttribute(key, value);
  }
  return node;
}

function element(name, className, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

// One bar: who has how much of it. In a lane, `parts` are {job, bytes, pinned}
// and {cached: true, bytes}.
class Lane {
  constructor(title, kind) {
    this.bar = svg("svg", {role: "img", preserveAspectRatio: "none",
                           viewBox: `0 0 ${WIDTH} ${HEIGHT}`});
    this.title = title;
    this.left = element("span");
    this.right = element("span");
    this.node = element("div", `lane ${kind}`, element("h3", "", title),
                        this.bar, element("div", "ends", this.left, this.right));
  }

  draw(parts, whole, left, right) {
    const nodes = [];
    let x = 0;
    for (const part of parts) {
      const width = whole ? WIDTH * part.bytes / whole : 0;
      nodes.push(...this.segment(part, x, width));
      x += width;
    }
    this.bar.replaceChildren(...nodes);
    this.label(parts, whole, left);
    this.left.textContent = left;
    this.right.textContent = right;
  }

  segment(part, x, width) {
    const box = {x: x.toFixed(2), y: 0, width: width.toFixed(2), height: HEIGHT};
    if (part.cached) return [this.rect({...box, class: "cached"}, part)];
    const nodes = [this.rect({...box, fill: colour(part.job)}, part)];
    if (part.pinned) {
      nodes.push(svg("rect", {class: "pinned", x: box.x, height: 12,
                              y: HEIGHT - 12,
                              width: (width * part.pinned / part.bytes)
                                  .toFixed(2)}));
    }
    if (width > 4) {
      nodes.push(svg("rect", {class: "edge", x: (x + width - 1).toFixed(2),
                              y: 0, width: 1, height: HEIGHT}));
    }
    return nodes;
  }

  rect(attributes, part) {
    const rect = svg("rect", attributes);
    const title = svg("title");
    title.textContent = part.cached
        ? `cached: ${bytes(part.bytes)}`
        : `${part.job}: ${bytes(part.bytes)}` +
          (part.pinned ? `, ${bytes(part.pinned)} pinned` : "");
    rect.append(title);
    return rect;
  }

  label(parts, whole, left) {
    const largest = parts.filter(p => p.job)
        .sort((a, b) => b.bytes - a.bytes);
    const words = largest.slice(0, 8)
        .map(p => `${p.job} ${bytes(p.bytes)}`);
    if (largest.length > 8) words.push(`${largest.length - 8} more jobs`);
    this.bar.setAttribute(
        "aria-label", `${this.title} of ${bytes(whole)}: ${left}. ` +
                          (words.join(", ") || "no jobs"));
  }
}

export class DeviceView {
  constructor(device, index) {
    this.id = device.id;
    this.index = index;
    this.mode = element("p");
    const heading = element("h2", "", device.id);
    heading.id = `device-${index}`;
    this.memory = new Lane("Device pool", "pool");
    this.swap = new Lane("Swap space", "swap");
    this.series = ["a", "b", "c", "d"].map(kind => ({kind, points: []}));
    const names = ["resident", "swapped", "evicted", "restored"];
    this.series.forEach((s, i) => { s.name = names[i]; });
    this.charts = [
      new Chart("Memory", this.series.slice(0, 2), bytes),
      new Chart("Traffic", this.series.slice(2), rate, 1 << 20),
    ];
    this.node = element(
        "section", "device",
        element("div", "heading", heading, this.mode), this.memory.node,
        this.swap.node,
        element("div", "charts", ...this.charts.map(c => c.figure)));
    this.node.setAttribute("aria-labelledby", heading.id);
  }

  add(sample) {
    const [, time, devices] = sample;
    devices[this.index].forEach((value, i) => {
      const {points} = this.series[i];
      points.push([time, value]);
      while (points[0][0] < time - SPAN - 2) points.shift();
    });
  }

  draw(device, jobs, now) {
    this.mode.textContent = `${device.kind} device, ${bytes(device.pool)}; ` +
        MODES[device.mode];
    const own = jobs.filter(j => j.device === device.id);
    const parts = own.filter(j => j.resident > 0)
        .map(j => ({job: j.name, bytes: j.resident, pinned: j.pinned}));
    if (device.cached) parts.push({cached: true, bytes: device.cached});
    this.memory.draw(
        parts, device.pool,
        `${bytes(device.resident)} resident, of it ` +
            (device.shared ? `${bytes(device.shared)} shared, ` : "") +
            `${bytes(own.reduce((sum, j) => sum + j.pinned, 0))} pinned ` +
            `(dark edge); ${bytes(device.cached)} cached (grey)` +
            (device.moving ? `; ${bytes(device.moving)} moving` : ""),
        `${bytes(device.free)} free`);
    const used = device.swap_used + device.swap_clean;
    this.swap.draw(
        own.filter(j => j.swapped > 0)
            .map(j => ({job: j.name, bytes: j.swapped})),
        device.swap_limit,
        `${bytes(device.swap_used)} swapped` +
            (device.swap_clean
                 ? `, ${bytes(device.swap_clean)} copies of resident buffers`
                 : ""),
        `${bytes(Math.max(0, device.swap_limit - used))} free`);
    for (const chart of this.charts) chart.draw(now);
  }
}
