#include "client/ctl/doctor/finding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mets::ctl {
namespace {

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "good";
    case Verdict::kHint:
      return "hint";
    case Verdict::kWrong:
      return "WRONG";
  }
  return "";
}

}  // namespace

std::string ToText(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    absl::StrAppend(
        &text, absl::StrFormat("%-5s  %-12s  %s\n", NameOf(finding.verdict),
                               finding.subject, finding.text));
    if (finding.advice.empty()) continue;
    absl::StrAppend(&text, absl::StrFormat("%21s", "-> "), finding.advice,
                    "\n");
  }
  return text;
}

std::string ToJson(const Findings& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"verdict", NameOf(finding.verdict)},
                    {"subject", finding.subject},
                    {"text", finding.text},
                    {"advice", finding.advice}});
  }
  return list.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

bool AnyWrong(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& f) {
    return f.verdict == Verdict::kWrong;
  });
}

}  // namespace mets::ctl
