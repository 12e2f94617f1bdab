// Numbers as people read them, and the colours of jobs.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(count) {
  let unit = 0;
  let value = count;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024;
    ++unit;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const text = value.toFixed(digits);
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text} ${UNITS[unit]}`;
}

export const rate = count => `${bytes(count)}/s`;

export function duration(seconds) {
  if (seconds === 0) return "0 s";
  if (seconds < 0.0095) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 0.9995) return `${(seconds * 1e3).toFixed(0)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${seconds.toFixed(0)} s`;
  const s = Math.round(seconds);
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

// Each job keeps its colour while the page is open. Neighbours differ most: the
// golden angle.
const hues = new Map();

export function colour(job) {
  if (!hues.has(job)) hues.set(job, hues.size);
  const n = hues.get(job);
  const hue = (215 + n * 137.508) % 360;
  const lightness = [46, 58, 40][Math.floor(n / 8) % 3];
  return `hsl(${hue.toFixed(0)} 58% ${lightness}%)`;
}

export const PHASES = {
  computes: "computes",
  waits_for_turn: "waits for its turn",
  waits_for_memory: "waits for memory",
  idle: "idle",
  silent: "does not answer",
  away: "away",
  paused: "paused",
};

export const MODES = {
  free: "jobs compute all at once",
  turns: "jobs take turns, step by step",
  quanta: "jobs take turns, for a while each",
};
