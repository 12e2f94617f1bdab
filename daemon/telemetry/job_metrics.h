// Metrics of jobs.
#ifndef METS_DAEMON_TELEMETRY_JOB_METRICS_H_
#define METS_DAEMON_TELEMETRY_JOB_METRICS_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "daemon/core/status.h"

namespace mets::telemetry {

// Jobs of one name on one device (of several domains) become one row:
// Prometheus refuses duplicates. Amounts are added up; of slowdowns and waits
// that go on, the largest counts; the gate is open when all are.
std::vector<core::JobStatus> MergeJobs(
    const std::vector<core::JobStatus>& jobs);

// REQUIRES: no two rows have the same device and name.
void AddJobMetrics(const std::vector<core::JobStatus>& jobs,
                   std::vector<prometheus::MetricFamily>* families);

}  // namespace mets::telemetry

#endif  // METS_DAEMON_TELEMETRY_JOB_METRICS_H_
