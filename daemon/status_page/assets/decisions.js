// Many moves for one job within a second are one line.
import {bytes} from "./format.js";

const sum = (events, field) => events.reduce((n, e) => n + e[field], 0);

function names(events) {
  const jobs = [...new Set(events.map(e => e.job))];
  return jobs.length > 3 ? `${jobs.length} jobs`
                         : jobs.map(job => `'${job}'`).join(", ");
}

const WORDS = {
  evicted: all =>
      `evicted ${bytes(sum(all, "bytes"))} in ${sum(all, "count")} buffers of ` +
      `${names(all)}, for '${all[0].for_job}' (${all.length} orders)`,
  restored: all =>
      `restored ${bytes(sum(all, "bytes"))} in ${sum(all, "count")} buffers ` +
      `of '${all[0].job}' (${all.length} times)`,
  granted: all =>
      `granted ${bytes(sum(all, "bytes"))} to '${all[0].job}', which had to ` +
      `wait ${all.length} times`,
};

function keyOf(event) {
  if (!WORDS[event.kind]) return event.number;
  const whose = event.kind === "evicted" ? event.for_job : event.job;
  return `${Math.floor(event.unix_us / 1e6)} ${event.kind} ${whose} ` +
      `${event.device} ${event.cause}`;
}

// Lines {unix_us, kind, text} of events, newest first as they are.
export function grouped(events) {
  const groups = new Map();
  for (const event of events) {
    const key = keyOf(event);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(event);
  }
  return [...groups.values()].map(all => ({
    unix_us: all[0].unix_us,
    kind: all[0].kind,
    text: all.length > 1 ? WORDS[all[0].kind](all) : all[0].text,
  }));
}
