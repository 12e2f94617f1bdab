// Operators' caps on what jobs wish for.
#ifndef METS_DAEMON_CORE_OPERATING_CAPS_H_
#define METS_DAEMON_CORE_OPERATING_CAPS_H_

#include <string>

#include "daemon/core/inputs.h"

namespace mets::core {

// Lowers what the session wishes for to its caps. Returns a line for its user
// that says what was lowered; empty when nothing was asked for in vain.
std::string ApplyCaps(SessionOpened* opened);

// `narrow` where it says something, else `wide`.
inline Caps Narrowed(const Caps& wide, const Caps& narrow) {
  Caps caps = narrow;
  if (!caps.max_priority.has_value()) caps.max_priority = wide.max_priority;
  if (!caps.max_guarantee.has_value()) caps.max_guarantee = wide.max_guarantee;
  if (!caps.max_limit.has_value()) caps.max_limit = wide.max_limit;
  return caps;
}

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_OPERATING_CAPS_H_
