#include "daemon/status_page/page_json.h"

#include <nlohmann/json.hpp>

namespace mets::status_page {
namespace {

using Json = nlohmann::ordered_json;

const char* ModeName(core::SharingMode mode) {
  switch (mode) {
    case core::SharingMode::kFree:
      return "free";
    case core::SharingMode::kTurns:
      return "turns";
    case core::SharingMode::kQuanta:
      return "quanta";
  }
  return "unknown";
}

Json DeviceJson(const core::DeviceStatus& d) {
  return {{"id", d.id},
          {"kind", d.kind},
          {"mode", ModeName(d.mode)},
          {"pool", d.pool.count()},
          {"free", d.free.count()},
          {"cached", d.cached.count()},
          {"resident", d.resident.count()},
          {"shared", d.shared.count()},
          {"moving", (d.moving + d.draining).count()},
          {"swap_used", d.swap_used.count()},
          {"swap_clean", d.swap_clean.count()},
          {"swap_limit", d.swap_limit.count()},
          {"turns", d.turns_total},
          {"quanta", d.quanta_total}};
}

Json JobJson(const core::JobStatus& j) {
  return {{"name", j.name},
          {"device", j.device},
          {"uid", j.uid},
          {"phase", core::PhaseName(j.phase)},
          {"sessions", j.sessions},
          {"resident", j.resident.count()},
          {"swapped", j.swapped.count()},
          {"pinned", j.pinned.count()},
          {"held", j.held.count()},
          {"cached", j.cached.count()},
          {"limit", j.limit.count()},
          {"guarantee", j.guarantee.count()},
          {"priority", j.priority},
          {"weight", j.weight},
          {"evicted", j.totals.evicted.count()},
          {"restored", j.totals.restored.count()},
          {"waiting", j.waiting},
          {"waits", j.waits_total},
          {"wait_seconds", absl::ToDoubleSeconds(j.wait_total)},
          {"gate_seconds", absl::ToDoubleSeconds(j.gate_wait_total)},
          {"steps", j.totals.steps},
          {"step_seconds", absl::ToDoubleSeconds(j.step_duration)},
          {"slowdown", j.slowdown}};
}

Json ShareJson(const core::ShareStatus& s) {
  return {{"name", s.name},           {"device", s.device},
          {"bytes", s.bytes.count()}, {"jobs", s.jobs},
          {"sessions", s.sessions},   {"payer", s.payer}};
}

Json SampleJson(const Sample& sample) {
  Json devices = Json::array();
  for (const DevicePoint& p : sample.devices) {
    devices.push_back({p.resident.count(), p.swapped.count(),
                       static_cast<int64_t>(p.evicted_per_second),
                       static_cast<int64_t>(p.restored_per_second)});
  }
  return Json::array(
      {sample.number, absl::ToUnixSeconds(sample.time), std::move(devices)});
}

// A text that is no UTF-8 becomes one.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string StatusJson(const Identity& identity, absl::Time now,
                       const core::Status& status,
                       const std::vector<Sample>& samples) {
  Json json = {
      {"version", identity.version},
      {"host", identity.host},
      {"uptime_seconds", absl::ToDoubleSeconds(now - identity.started)},
      {"policy", status.policy},
      {"devices", Json::array()},
      {"jobs", Json::array()},
      {"shares", Json::array()},
      {"samples", Json::array()}};
  for (const auto& device : status.devices) {
    json["devices"].push_back(DeviceJson(device));
  }
  for (const auto& job : status.jobs) json["jobs"].push_back(JobJson(job));
  for (const auto& s : status.shares) json["shares"].push_back(ShareJson(s));
  for (const Sample& sample : samples) {
    json["samples"].push_back(SampleJson(sample));
  }
  return Dump(json);
}

std::string EventsJson(const std::vector<core::EventLog::Entry>& entries) {
  Json json = Json::array();
  for (const auto& [number, event] : entries) {
    if (core::IsDetail(event.kind)) continue;
    const absl::string_view kind = core::EventName(event.kind);
    json.push_back({{"number", number},
                    {"unix_us", absl::ToUnixMicros(event.time)},
                    {"kind", std::string(kind.data(), kind.size())},
                    {"job", event.job},
                    {"for_job", event.for_job},
                    {"device", event.device},
                    {"cause", static_cast<int>(event.cause)},
                    {"bytes", event.bytes.count()},
                    {"count", event.count},
                    {"text", core::EventText(event)}});
  }
  return Dump(json);
}

std::string WhyJson(const std::vector<core::WhyAnswer>& answers) {
  Json json = Json::array();
  for (const core::WhyAnswer& a : answers) {
    json.push_back({{"device", a.device},
                    {"phase", core::PhaseName(a.phase)},
                    {"summary", a.summary},
                    {"reasons", a.reasons},
                    {"advice", a.advice},
                    {"report", a.report}});
  }
  return Dump(json);
}

}  // namespace mets::status_page
