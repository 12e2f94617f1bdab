// Names that people and programs give to things.
#ifndef METS_COMMON_BASE_PLAIN_NAME_H_
#define METS_COMMON_BASE_PLAIN_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mets {

// OK when `name` matches [A-Za-z0-9._-]{1,63}; else INVALID_ARGUMENT with a
// text that shows the name (shortened, without control characters) and says
// what is allowed. `kind` is what the name is of: "job".
absl::Status ValidatePlainName(absl::string_view kind, absl::string_view name);

}  // namespace mets

#endif  // METS_COMMON_BASE_PLAIN_NAME_H_
