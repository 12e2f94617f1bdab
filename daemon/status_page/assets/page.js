// Asks metsd once a second, and shows what it says.
import {bytes, colour, duration, PHASES, rate} from "./format.js";
import {grouped} from "./decisions.js";
import {DeviceView} from "./view.js";

const PERIOD_MS = 1000;
const MOST_DECISIONS = 500;
const byId = id => document.getElementById(id);

const state = {
  status: null, views: [], lastSample: 0, lastEvent: 0, decisions: [],
  sort: "resident", descending: true, paused: false, before: new Map(),
};

// ---- jobs -------------------------------------------------------------------

const COLUMNS = [
  {key: "name", name: "Job", of: j => j.name},
  {key: "device", name: "Device", of: j => j.device, left: true},
  {key: "phase", name: "State", of: j => PHASES[j.phase] ?? j.phase, left: true},
  {key: "resident", name: "Resident", of: j => j.resident, show: bytes},
  {key: "swapped", name: "Swapped", of: j => j.swapped, show: bytes},
  {key: "pinned", name: "Pinned", of: j => j.pinned, show: bytes},
  {key: "limit", name: "Limit", of: j => j.limit,
   show: n => n ? bytes(n) : "none"},
  {key: "traffic", name: "Traffic", of: j => j.traffic, show: rate},
  {key: "waits", name: "Waited", of: j => j.wait_seconds + j.gate_seconds,
   show: duration},
  {key: "step", name: "Step", of: j => j.step_seconds,
   show: s => s ? duration(s) : "–"},
  {key: "slowdown", name: "Slowdown", of: j => j.slowdown,
   show: s => s ? `${s.toFixed(2)} ×` : "–"},
];

function heads() {
  const row = byId("job-table").tHead.rows[0];
  for (const column of COLUMNS) {
    const head = document.createElement("th");
    head.scope = "col";
    if (column.left) head.className = "left";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column.name;
    button.addEventListener("click", () => sortBy(column.key));
    head.append(button);
    head.dataset.key = column.key;
    row.append(head);
  }
  const last = document.createElement("th");
  last.scope = "col";
  last.textContent = "";
  row.append(last);
  markSort();
}

function sortBy(key) {
  const text = ["name", "device", "phase"].includes(key);
  state.descending = state.sort === key ? !state.descending : !text;
  state.sort = key;
  markSort();
  drawJobs();
}

function markSort() {
  for (const head of byId("job-table").tHead.rows[0].cells) {
    if (head.dataset.key === state.sort) {
      head.setAttribute("aria-sort",
                        state.descending ? "descending" : "ascending");
    } else {
      head.removeAttribute("aria-sort");
    }
  }
}

function sorted(jobs) {
  const {of} = COLUMNS.find(c => c.key === state.sort);
  const way = state.descending ? -1 : 1;
  const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;
  return jobs.slice().sort(
      (a, b) => way * compare(of(a), of(b)) || compare(a.name, b.name) ||
          compare(a.device, b.device));
}

function cell(column, job) {
  const value = column.of(job);
  if (column.key === "name") {
    const head = document.createElement("th");
    head.scope = "row";
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.backgroundColor = colour(job.name);
    swatch.setAttribute("aria-hidden", "true");
    head.append(swatch, value);
    return head;
  }
  const node = document.createElement("td");
  if (column.left) node.className = "left";
  if (column.key === "phase") {
    const phase = document.createElement("span");
    phase.className = `phase ${job.phase}`;
    phase.textContent = value;
    node.append(phase);
    return node;
  }
  node.textContent = column.show ? column.show(value) : value;
  if (value === 0) node.className = "zero";
  if (column.key === "slowdown" && value >= 1.2) node.className = "slow";
  return node;
}

function makeRow(job) {
  const row = document.createElement("tr");
  const last = document.createElement("td");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Why?";
  button.setAttribute("aria-label", `Why does ${job.name} do that?`);
  button.addEventListener("click", () => showWhy(job.name));
  last.append(button);
  row.append(last);
  return row;
}

// Rows stay the same nodes, so that the focus stays where it is.
const rows = new Map();

function drawJobs() {
  if (!state.status) return;
  const filter = byId("filter").value.trim().toLowerCase();
  const shown = sorted(state.status.jobs.filter(
      j => `${j.name} ${j.device} ${PHASES[j.phase]}`.toLowerCase()
          .includes(filter)));
  const body = byId("job-table").tBodies[0];
  const keep = new Set();
  shown.forEach((job, i) => {
    const key = `${job.uid}/${job.name}@${job.device}`;
    keep.add(key);
    if (!rows.has(key)) rows.set(key, makeRow(job));
    const row = rows.get(key);
    while (row.cells.length > 1) row.cells[0].remove();
    row.prepend(...COLUMNS.map(column => cell(column, job)));
    if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] ?? null);
  });
  for (const [key, row] of rows) {
    if (keep.has(key)) continue;
    row.remove();
    rows.delete(key);
  }
  const all = state.status.jobs.length;
  byId("job-count").textContent =
      shown.length === all ? `${all}` : `${shown.length} of ${all}`;
  byId("no-jobs").hidden = all > 0;
  byId("job-table").hidden = all === 0;
}

// ---- shares -----------------------------------------------------------------

function drawShares(shares) {
  byId("shares").hidden = !shares.length;
  byId("share-table").tBodies[0].replaceChildren(...shares.map(share => {
    const row = document.createElement("tr");
    const name = part("th", share.name || "of an earlier metsd");
    name.scope = "row";
    const left = text => {
      const node = part("td", text);
      node.className = "left";
      return node;
    };
    row.append(name, left(share.device), part("td", bytes(share.bytes)),
               part("td", share.sessions), left(share.jobs.join(", ")),
               left(share.payer));
    return row;
  }));
}

function addTraffic(status, seconds) {
  const now = new Map();
  for (const job of status.jobs) {
    const key = `${job.uid}/${job.name}@${job.device}`;
    const moved = job.evicted + job.restored;
    const before = state.before.get(key) ?? moved;
    job.traffic = seconds > 0 ? Math.max(0, moved - before) / seconds : 0;
    now.set(key, moved);
  }
  state.before = now;
}

// ---- why --------------------------------------------------------------------

function part(name, text) {
  const node = document.createElement(name);
  node.textContent = text;
  return node;
}

function list(title, lines) {
  if (!lines.length) return [];
  const items = document.createElement("ul");
  items.append(...lines.map(line => part("li", line)));
  return [part("h3", title), items];
}

async function showWhy(job) {
  byId("why-heading").textContent = job;
  byId("why-text").replaceChildren(part("p", "…"));
  if (!byId("why").open) byId("why").showModal();
  try {
    const answer = await ask(`api/why?job=${encodeURIComponent(job)}`);
    const nodes = answer.flatMap(a => [
      part("p", `On ${a.device}: ${a.summary}.`),
      ...(a.report ? [part("pre", a.report)] : []),
      ...list("Why", a.reasons), ...list("What would help", a.advice)]);
    const last = state.decisions.filter(
        e => e.job === job && ["evicted", "denied", "granted"].includes(e.kind));
    nodes.push(...list("What happened last", last.slice(0, 3).map(e => e.text)));
    byId("why-text").replaceChildren(
        ...(nodes.length ? nodes : [part("p", "The job has ended.")]));
  } catch {
    byId("why-text").replaceChildren(part("p", "metsd does not answer."));
  }
}

// ---- decisions --------------------------------------------------------------

function addDecisions(events) {
  if (!events.length) return;
  state.lastEvent = events.at(-1).number;
  state.decisions = events.slice().reverse().concat(state.decisions)
      .slice(0, MOST_DECISIONS);
  if (!state.paused) drawDecisions();
}

function drawDecisions() {
  byId("no-decisions").hidden = state.decisions.length > 0;
  byId("decisions").replaceChildren(...grouped(state.decisions).map(line => {
    const item = document.createElement("li");
    const time = document.createElement("time");
    const when = new Date(line.unix_us / 1000);
    time.dateTime = when.toISOString();
    time.textContent = when.toLocaleTimeString([], {hour12: false});
    const text = part("span", line.text);
    text.className = line.kind;
    item.append(time, text);
    return item;
  }));
}

// ---- asking -----------------------------------------------------------------

async function ask(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(5000)});
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

function drawDevices(status) {
  if (state.views.map(v => v.id).join() !==
      status.devices.map(d => d.id).join()) {
    state.views = status.devices.map((d, i) => new DeviceView(d, i));
    byId("devices").replaceChildren(...state.views.map(v => v.node));
  }
  for (const sample of status.samples) {
    for (const view of state.views) view.add(sample);
  }
  const now = state.now;
  status.devices.forEach((d, i) => state.views[i].draw(d, status.jobs, now));
}

function show(status) {
  const newest = status.samples.at(-1);
  if (newest) {
    const seconds = state.now ? newest[1] - state.now : 0;
    state.lastSample = newest[0];
    state.now = newest[1];
    addTraffic(status, seconds);
    state.status = status;
  } else if (state.status) {
    // No new second: rates are still the last ones.
    return;
  }
  byId("host").textContent = status.host;
  byId("daemon").textContent = `metsd ${status.version}, up ` +
      `${duration(status.uptime_seconds)}, policy ${status.policy}`;
  document.title = `METS ${status.host}`;
  status.jobs.sort((a, b) => a.name < b.name ? -1 : 1);
  for (const job of status.jobs) colour(job.name);
  drawDevices(status);
  drawJobs();
  drawShares(status.shares);
}

function connected(yes) {
  const node = byId("connection");
  const words = yes ? "live" : "metsd does not answer: old numbers";
  // Only changes are spoken.
  if (node.textContent !== words) node.textContent = words;
  node.classList.toggle("lost", !yes);
}

function forget() {
  Object.assign(state, {lastSample: 0, lastEvent: 0, decisions: [], views: [],
                        now: undefined, before: new Map()});
}

async function refresh() {
  try {
    const status = await ask(`api/status?after=${state.lastSample}`);
    // Another metsd than before counts anew.
    if (state.uptime > status.uptime_seconds) {
      forget();
      state.uptime = 0;
      return refresh();
    }
    state.uptime = status.uptime_seconds;
    show(status);
    addDecisions(await ask(`api/events?after=${state.lastEvent}`));
    connected(true);
  } catch (error) {
    console.warn(error);
    connected(false);
  }
}

async function run() {
  heads();
  byId("filter").addEventListener("input", drawJobs);
  byId("pause").addEventListener("click", () => {
    state.paused = !state.paused;
    byId("pause").setAttribute("aria-pressed", state.paused);
    byId("pause").textContent = state.paused ? "Go on" : "Pause";
    if (!state.paused) drawDecisions();
  });
  for (;;) {
    await refresh();
    await new Promise(resolve => setTimeout(resolve, PERIOD_MS));
  }
}

run();
