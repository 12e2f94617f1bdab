#include "daemon/core/operating/caps.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mets::core {

std::string ApplyCaps(SessionOpened* opened) {
  const Caps& caps = opened->caps;
  std::vector<std::string> lowered;
  if (caps.max_priority.has_value() && opened->priority > *caps.max_priority) {
    lowered.push_back(absl::StrCat("priority ", opened->priority, " to ",
                                   *caps.max_priority));
    opened->priority = *caps.max_priority;
  }
  if (caps.max_limit.has_value()) {
    if (opened->limit > *caps.max_limit) {
      lowered.push_back(absl::StrCat("limit ", FormatBytes(opened->limit),
                                     " to ", FormatBytes(*caps.max_limit)));
    }
    opened->limit = opened->limit.is_zero()
                        ? *caps.max_limit
                        : std::min(opened->limit, *caps.max_limit);
  }
  Bytes most = opened->guarantee;
  if (caps.max_guarantee.has_value())
    most = std::min(most, *caps.max_guarantee);
  if (caps.max_limit.has_value()) most = std::min(most, *caps.max_limit);
  if (opened->guarantee > most) {
    lowered.push_back(absl::StrCat("guarantee ", FormatBytes(opened->guarantee),
                                   " to ", FormatBytes(most)));
    opened->guarantee = most;
  }
  if (lowered.empty()) return "";
  return absl::StrCat("the operator's caps lower this job's ",
                      absl::StrJoin(lowered, ", its "));
}

}  // namespace mets::core
