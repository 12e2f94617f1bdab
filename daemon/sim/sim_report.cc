#include "daemon/sim/sim_report.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mets::sim {
namespace {

using Json = nlohmann::ordered_json;

double Seconds(const JobResult& result) {
  return result.ended - result.started;
}

// Of each time that the job did what its trace says.
std::vector<double> RepeatSeconds(const JobResult& result) {
  std::vector<double> seconds;
  double before = result.started;
  for (double ended : result.repeats) {
    seconds.push_back(ended - std::exchange(before, ended));
  }
  return seconds;
}

}  // namespace

double Fairness(const std::vector<JobReport>& jobs) {
  double sum = 0, squares = 0;
  for (const JobReport& job : jobs) {
    const double progress = job.ideal / Seconds(job.result) / job.weight;
    sum += progress;
    squares += progress * progress;
  }
  return sum * sum / (static_cast<double>(jobs.size()) * squares);
}

std::string ToJson(const SimReport& report) {
  Json jobs = Json::array();
  for (const JobReport& job : report.jobs) {
    jobs.push_back({{"name", job.name},
                    {"ideal_seconds", job.ideal},
                    {"least_seconds", job.least},
                    {"input_seconds", job.input},
                    {"device_seconds", job.device},
                    {"seconds", Seconds(job.result)},
                    {"stall_seconds", job.result.stall},
                    {"wait_seconds", job.result.wait},
                    {"gate_seconds", job.result.gate},
                    {"shared_seconds", job.result.shared},
                    {"slowed_seconds", job.result.slowed},
                    {"requests", job.result.requests},
                    {"evicted_bytes", job.result.evicted.count()},
                    {"restored_bytes", job.result.restored.count()},
                    {"least_restored_bytes", job.least_restored.count()},
                    {"hump_bytes", job.humps.count()},
                    {"peak_bytes", job.result.peak.count()},
                    {"repeat_seconds", RepeatSeconds(job.result)}});
  }
  const Json all = {{"policy", report.policy},
                    {"device_bytes", report.device_memory.count()},
                    {"bus_bytes_per_second", report.bus_bytes_per_second},
                    {"total_seconds", report.total},
                    {"serial_seconds", report.serial},
                    {"fairness", Fairness(report.jobs)},
                    {"jobs", jobs}};
  return all.dump(2) + "\n";
}

std::string ToText(const SimReport& report) {
  std::string text = absl::StrFormat(
      "device %s, bus %g GB/s each way, policy %s\n"
      "%.3f s in all; one after the other %.3f s; fairness %.3f\n\n"
      "%-24s %9s %9s %9s %8s %8s %8s %8s %11s %11s %11s %11s %11s\n",
      FormatBytes(report.device_memory), report.bus_bytes_per_second / 1e9,
      report.policy, report.total, report.serial, Fairness(report.jobs), "job",
      "ideal s", "least s", "s", "stall s", "wait s", "gate s", "slowed s",
      "evicted", "restored", "least in", "humps", "peak");
  for (const JobReport& job : report.jobs) {
    absl::StrAppendFormat(&text,
                          "%-24s %9.3f %9.3f %9.3f %8.3f %8.3f %8.3f %8.3f "
                          "%11s %11s %11s %11s %11s\n",
                          job.name, job.ideal, job.least, Seconds(job.result),
                          job.result.stall, job.result.wait, job.result.gate,
                          job.result.slowed, FormatBytes(job.result.evicted),
                          FormatBytes(job.result.restored),
                          FormatBytes(job.least_restored),
                          FormatBytes(job.humps), FormatBytes(job.result.peak));
  }
  return text;
}

}  // namespace mets::sim
