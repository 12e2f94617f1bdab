#include "client/ctl/bench/bench_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/text_table.h"

namespace mets::ctl {
namespace {

std::string Number(double value) {
  return absl::StrFormat(value < 10 ? "%.3f" : "%.1f", value);
}

std::string Expected(const BenchFigure& figure) {
  if (figure.at_least.has_value()) {
    return absl::StrCat("at least ", Number(*figure.at_least));
  }
  if (figure.at_most.has_value()) {
    return absl::StrCat("at most ", Number(*figure.at_most));
  }
  return "";
}

}  // namespace

std::string ToTable(const BenchReport& report) {
  TextTable table({"measured", "unit", "value", "expected", ""}, 2);
  for (const BenchFigure& figure : report.figures) {
    table.Add({figure.text, figure.unit, Number(figure.value), Expected(figure),
               figure.as_expected() ? "" : "!"});
  }
  return absl::StrCat("device ", report.device, " (", report.kind, ")\n",
                      table.Render());
}

std::string ToJson(const BenchReport& report) {
  nlohmann::ordered_json json = {{"device", report.device},
                                 {"kind", report.kind}};
  for (const BenchFigure& figure : report.figures) {
    json["figures"][figure.key] = figure.value;
  }
  return json.dump(2) + "\n";
}

}  // namespace mets::ctl
