// Durations as people read them.
#ifndef METS_COMMON_BASE_DURATION_TEXT_H_
#define METS_COMMON_BASE_DURATION_TEXT_H_

#include <string>

#include "absl/time/time.h"

namespace mets {

// Two or three significant digits: "850 us", "23 ms", "4.1 s", "3 min 12 s",
// "2 h 5 min"; "forever" for InfiniteDuration. Negative ones count as zero.
std::string DurationText(absl::Duration duration);

}  // namespace mets

#endif  // METS_COMMON_BASE_DURATION_TEXT_H_
