// Values that several keys of the configuration have.
#ifndef METS_DAEMON_APP_CONFIG_CONFIG_VALUES_H_
#define METS_DAEMON_APP_CONFIG_CONFIG_VALUES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/core/values.h"

namespace mets::app {

// INVALID_ARGUMENT: the value is not possible, and what is accepted.
absl::Status BadValue(absl::string_view value, absl::string_view accepted);

// As ConfigKey::set.
absl::Status SetMaxPriority(absl::string_view value, core::Caps* caps);
absl::Status SetMaxGuarantee(absl::string_view value, core::Caps* caps);
absl::Status SetMaxLimit(absl::string_view value, core::Caps* caps);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_CONFIG_CONFIG_VALUES_H_
