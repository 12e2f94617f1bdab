// What mets-sim prints.
#ifndef METS_DAEMON_SIM_SIM_REPORT_H_
#define METS_DAEMON_SIM_SIM_REPORT_H_

#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "daemon/sim/sim_client.h"

namespace mets::sim {

struct JobReport {
  std::string name;
  double ideal = 0;   // Seconds on a device of its own that is large enough.
  double input = 0;   // Of it, work before steps that needs no device.
  double device = 0;  // Of it, ops on the device.
  int weight = 1;
  Bytes humps;           // Alone on this device (HumpBytes).
  Bytes least_restored;  // So too (LeastRestored).
  double least = 0;      // Seconds, so too (LeastSeconds).
  JobResult result;
};

struct SimReport {
  std::string policy;
  Bytes device_memory;
  double bus_bytes_per_second = 0;
  double total = 0;   // Seconds from the first start to the last end.
  double serial = 0;  // Sum of the jobs' times, each alone on this device.
  std::vector<JobReport> jobs;
};

// Jain's index of the jobs' progress, ideal time ÷ time, over their weights: 1
// when all are slowed down alike, 1 ÷ n when one has everything.
double Fairness(const std::vector<JobReport>& jobs);

std::string ToJson(const SimReport& report);
std::string ToText(const SimReport& report);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_SIM_REPORT_H_
