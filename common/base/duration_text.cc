#include "common/base/duration_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mets {
namespace {

// One decimal below ten.
std::string Number(double value, const char* unit) {
  const double tenths = std::round(value * 10) / 10;
  return tenths < 10 && tenths != std::floor(tenths)
             ? absl::StrFormat("%.1f %s", tenths, unit)
             : absl::StrFormat("%.0f %s", value, unit);
}

}  // namespace

std::string DurationText(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return "forever";
  const double us = std::max(0.0, absl::ToDoubleMicroseconds(duration));
  if (us < 999.5) return Number(us, "us");
  if (us < 999.5e3) return Number(us / 1e3, "ms");
  if (us < 59.5e6) return Number(us / 1e6, "s");
  const auto seconds = static_cast<int64_t>(std::llround(us / 1e6));
  if (seconds < 3600) {
    return absl::StrCat(seconds / 60, " min ", seconds % 60, " s");
  }
  return absl::StrCat(seconds / 3600, " h ", seconds / 60 % 60, " min");
}

}  // namespace mets
