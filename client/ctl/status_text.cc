#include "client/ctl/status_text.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/ctl/phase_words.h"
#include "client/ctl/text_table.h"
#include "common/base/bytes.h"

namespace mets::ctl {
namespace {

using Json = nlohmann::ordered_json;

const char* ModeName(v1::SharingMode mode) {
  switch (mode) {
    case v1::SHARING_MODE_FREE:
      return "free";
    case v1::SHARING_MODE_TURNS:
      return "turns";
    case v1::SHARING_MODE_QUANTA:
      return "quanta";
    default:
      return "unknown";
  }
}

Json ToJson(const v1::DeviceStatus& d) {
  return {{"id", d.id()},
          {"kind", d.kind()},
          {"pool_bytes", d.pool_bytes()},
          {"free_bytes", d.free_bytes()},
          {"cached_bytes", d.cached_bytes()},
          {"resident_bytes", d.resident_bytes()},
          {"swap_used_bytes", d.swap_used_bytes()},
          {"swap_clean_bytes", d.swap_clean_bytes()},
          {"swap_limit_bytes", d.swap_limit_bytes()},
          {"moving_bytes", d.moving_bytes()},
          {"draining_bytes", d.draining_bytes()},
          {"orphan_bytes", d.orphan_bytes()},
          {"sharing_mode", ModeName(d.sharing_mode())},
          {"turns_total", d.turns_total()},
          {"quanta_total", d.quanta_total()},
          {"drained", d.drained()},
          {"pinned_bytes", d.pinned_bytes()},
          {"shared_bytes", d.shared_bytes()},
          {"copied_out_bytes_total", d.copied_out_bytes_total()},
          {"copied_in_bytes_total", d.copied_in_bytes_total()},
          {"handover_bytes_total", d.handover_bytes_total()},
          {"handover_seconds_total", d.handover_seconds_total()}};
}

Json Failures(const v1::JobStatus& job) {
  const auto& counts = job.failures_total();
  return std::map<std::string, uint64_t>(counts.begin(), counts.end());
}

Json ToJson(const v1::JobStatus& j) {
  return {{"name", j.name()},
          {"device", j.device()},
          {"sessions", j.sessions()},
          {"resident_bytes", j.resident_bytes()},
          {"swapped_bytes", j.swapped_bytes()},
          {"pinned_bytes", j.pinned_bytes()},
          {"held_bytes", j.held_bytes()},
          {"limit_bytes", j.limit_bytes()},
          {"guarantee_bytes", j.guarantee_bytes()},
          {"priority", j.priority()},
          {"evicted_bytes_total", j.evicted_bytes_total()},
          {"restored_bytes_total", j.restored_bytes_total()},
          {"unobserved_accesses_total", j.unobserved_accesses_total()},
          {"waiting", j.waiting()},
          {"cached_bytes", j.cached_bytes()},
          {"evictions_total", j.evictions_total()},
          {"restores_total", j.restores_total()},
          {"peak_live_bytes", j.peak_live_bytes()},
          {"peak_resident_bytes", j.peak_resident_bytes()},
          {"uid", j.uid()},
          {"waits_total", j.waits_total()},
          {"wait_seconds_total", j.wait_seconds_total()},
          {"unresponsive_sessions", j.unresponsive_sessions()},
          {"weight", j.weight()},
          {"gate_open", j.gate_open()},
          {"turns_total", j.turns_total()},
          {"gate_wait_seconds_total", j.gate_wait_seconds_total()},
          {"steps", j.steps()},
          {"step_seconds", j.step_seconds()},
          {"paused", j.paused()},
          {"clean_evictions_total", j.clean_evictions_total()},
          {"restore_stall_seconds_total", j.restore_stall_seconds_total()},
          {"step_seconds_total", j.step_seconds_total()},
          {"step_wait_seconds_total", j.step_wait_seconds_total()},
          {"recent_step_seconds", j.recent_step_seconds()},
          {"uncontended_step_seconds", j.uncontended_step_seconds()},
          {"slowdown", j.slowdown()},
          {"waiting_seconds", j.waiting_seconds()},
          {"failures_total", Failures(j)},
          {"phase", j.phase()}};
}

Json ToJson(const v1::ShareStatus& s) {
  return {{"name", s.name()},
          {"device", s.device()},
          {"checksum", s.checksum()},
          {"bytes", s.bytes()},
          {"sessions", s.sessions()},
          {"jobs", std::vector<std::string>(s.jobs().begin(), s.jobs().end())},
          {"payer", s.payer()}};
}

template <typename Rows>
Json ListOf(const Rows& rows) {
  Json list = Json::array();
  for (const auto& row : rows) list.push_back(ToJson(row));
  return list;
}

std::string Amount(uint64_t count) {
  return FormatBytes(Bytes(static_cast<int64_t>(count)));
}

// 0 means "none" for limits and guarantees.
std::string Wish(uint64_t count) { return count == 0 ? "-" : Amount(count); }

std::string DeviceTable(const v1::GetStatusResponse& status) {
  TextTable table(
      {"DEVICE", "KIND", "POOL", "FREE", "CACHED", "RESIDENT", "MOVING",
       "SWAP USED", "SWAP CLEAN", "SWAP LIMIT", "NEW JOBS"},
      /*left=*/2);
  for (const v1::DeviceStatus& d : status.devices()) {
    table.Add({d.id(), d.kind(), Amount(d.pool_bytes()), Amount(d.free_bytes()),
               Amount(d.cached_bytes()), Amount(d.resident_bytes()),
               Amount(d.moving_bytes() + d.draining_bytes()),
               Amount(d.swap_used_bytes()), Amount(d.swap_clean_bytes()),
               Amount(d.swap_limit_bytes()), d.drained() ? "no" : "yes"});
  }
  return table.Render();
}

std::string JobTable(const v1::GetStatusResponse& status) {
  if (status.jobs().empty()) return "no jobs\n";
  TextTable table({"JOB", "DEVICE", "PROCESSES", "RESIDENT", "SWAPPED",
                   "CACHED", "PINNED", "HELD", "LIMIT", "GUARANTEE", "PRIORITY",
                   "EVICTED", "RESTORED", "STATE"},
                  /*left=*/2);
  for (const v1::JobStatus& j : status.jobs()) {
    table.Add({j.name(), j.device(), absl::StrCat(j.sessions()),
               Amount(j.resident_bytes()), Amount(j.swapped_bytes()),
               Amount(j.cached_bytes()), Amount(j.pinned_bytes()),
               Amount(j.held_bytes()), Wish(j.limit_bytes()),
               Wish(j.guarantee_bytes()), absl::StrCat(j.priority()),
               Amount(j.evicted_bytes_total()),
               Amount(j.restored_bytes_total()), PhaseWords(j.phase())});
  }
  return table.Render();
}

std::string ShareTable(const v1::GetStatusResponse& status) {
  if (status.shares().empty()) return "no shares\n";
  TextTable table({"SHARE", "DEVICE", "COUNTS FOR", "JOBS", "PROCESSES", "SIZE",
                   "CHECKSUM"},
                  /*left=*/4);
  for (const v1::ShareStatus& s : status.shares()) {
    table.Add({s.name().empty() ? "(of an earlier metsd)" : s.name(),
               s.device(), s.payer(), absl::StrJoin(s.jobs(), ","),
               absl::StrCat(s.sessions()), Amount(s.bytes()),
               s.checksum().empty() ? "-" : s.checksum()});
  }
  return table.Render();
}

}  // namespace

std::string ToJson(const v1::GetStatusResponse& status, Parts parts) {
  Json json = Json::object();
  if (parts.daemon) {
    json["version"] = status.version();
    json["epoch"] = status.epoch();
    json["policy"] = status.policy();
    json["uptime_seconds"] = status.uptime_seconds();
  }
  if (parts.devices) json["devices"] = ListOf(status.devices());
  if (parts.jobs) json["jobs"] = ListOf(status.jobs());
  if (parts.shares) json["shares"] = ListOf(status.shares());
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ToTables(const v1::GetStatusResponse& status, Parts parts) {
  std::string text;
  if (parts.daemon) {
    text =
        absl::StrFormat("metsd %s, policy %s, up %.0f s\n\n", status.version(),
                        status.policy(), status.uptime_seconds());
  }
  if (parts.devices) text += DeviceTable(status);
  if (parts.devices && parts.jobs) text += "\n";
  if (parts.jobs) text += JobTable(status);
  // In `status`, only where there are any.
  if (parts.shares && !(parts.jobs && status.shares().empty())) {
    text += absl::StrCat(parts.jobs ? "\n" : "", ShareTable(status));
  }
  return text;
}

}  // namespace mets::ctl
