// What the configuration says about sessions, as the transport needs it.
#ifndef METS_DAEMON_APP_CONFIG_SESSION_RULES_H_
#define METS_DAEMON_APP_CONFIG_SESSION_RULES_H_

#include <vector>

#include "absl/status/status.h"
#include "daemon/app/config/config.h"
#include "daemon/transport/sessions/session_registry.h"

namespace mets::app {

transport::CapRules MakeCapRules(const Config& config);

// One rule for each socket directory: the run directory's, which has none, and
// the listeners'.
std::vector<transport::ListenerRule> MakeListenerRules(const Config& config);

// INVALID_ARGUMENT or NOT_FOUND, naming it, for a listener's directory that is
// none, or that two listeners have.
absl::Status CheckListeners(const Config& config);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_CONFIG_SESSION_RULES_H_
