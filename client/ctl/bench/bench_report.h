// What `metsctl bench` has measured, as a table and as JSON.
#ifndef METS_CLIENT_CTL_BENCH_BENCH_REPORT_H_
#define METS_CLIENT_CTL_BENCH_BENCH_REPORT_H_

#include <optional>
#include <string>
#include <vector>

namespace mets::ctl {

struct BenchFigure {
  std::string key;   // In JSON; ends in its unit, or in "ratio".
  std::string text;  // For people.
  double value = 0;
  std::string unit;
  // What a device of this kind should reach: at least, or at most.
  std::optional<double> at_least, at_most;

  bool as_expected() const {
    return (!at_least.has_value() || value >= *at_least) &&
           (!at_most.has_value() || value <= *at_most);
  }
};

struct BenchReport {
  std::string device, kind;
  std::vector<BenchFigure> figures;
};

std::string ToTable(const BenchReport& report);
std::string ToJson(const BenchReport& report);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_BENCH_BENCH_REPORT_H_
