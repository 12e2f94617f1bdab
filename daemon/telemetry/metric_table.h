// MetricTable: how rows of the core's state become metrics.
#ifndef METS_DAEMON_TELEMETRY_METRIC_TABLE_H_
#define METS_DAEMON_TELEMETRY_METRIC_TABLE_H_

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "daemon/core/costs/duration_histogram.h"

namespace mets::telemetry {

inline constexpr auto kGauge = prometheus::MetricType::Gauge;
inline constexpr auto kCounter = prometheus::MetricType::Counter;

using Labels = std::vector<prometheus::ClientMetric::Label>;

// One metric of rows: its name, its help text, what it is, and how its value is
// read. NaN: the row has none, and no sample.
template <typename Row>
struct Metric {
  const char* name;
  const char* help;
  prometheus::MetricType type;
  double (*value)(const Row& row);
};

inline constexpr double kNoSample = std::numeric_limits<double>::quiet_NaN();

inline double Value(Bytes bytes) { return static_cast<double>(bytes.count()); }

// To the microsecond: more digits would only make pages longer.
inline double Value(absl::Duration duration) {
  return std::round(absl::ToDoubleSeconds(duration) * 1e6) / 1e6;
}

inline prometheus::MetricFamily MakeFamily(const char* name, const char* help,
                                           prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

// REQUIRES: a gauge or a counter; no sample has these labels.
inline void AddSample(Labels labels, double value,
                      prometheus::MetricFamily* family) {
  prometheus::ClientMetric sample;
  sample.label = std::move(labels);
  if (family->type == prometheus::MetricType::Counter) {
    sample.counter.value = value;
  } else {
    sample.gauge.value = value;
  }
  family->metric.push_back(std::move(sample));
}

// REQUIRES: a histogram; no sample has these labels.
template <typename Bounds>
void AddHistogram(Labels labels,
                  const core::DurationHistogram<Bounds>& histogram,
                  prometheus::MetricFamily* family) {
  prometheus::ClientMetric sample;
  sample.label = std::move(labels);
  uint64_t count = 0;
  for (size_t i = 0; i < histogram.bounds().size(); ++i) {
    count += histogram.counts()[i];
    sample.histogram.bucket.push_back({count, Value(histogram.bounds()[i])});
  }
  sample.histogram.sample_count = histogram.count();
  sample.histogram.sample_sum = Value(histogram.sum());
  // The last bucket has no bound; the page needs it.
  sample.histogram.bucket.push_back({sample.histogram.sample_count, HUGE_VAL});
  family->metric.push_back(std::move(sample));
}

// The labels must tell rows apart.
template <typename Row, size_t kCount>
void Render(const Metric<Row> (&metrics)[kCount], const std::vector<Row>& rows,
            Labels (*labels_of)(const Row& row),
            std::vector<prometheus::MetricFamily>* families) {
  for (const Metric<Row>& metric : metrics) {
    prometheus::MetricFamily family =
        MakeFamily(metric.name, metric.help, metric.type);
    family.metric.reserve(rows.size());
    for (const Row& row : rows) {
      const double value = metric.value(row);
      if (!std::isnan(value)) AddSample(labels_of(row), value, &family);
    }
    families->push_back(std::move(family));
  }
}

}  // namespace mets::telemetry

#endif  // METS_DAEMON_TELEMETRY_METRIC_TABLE_H_
