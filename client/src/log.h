// Lines for people.
#ifndef METS_CLIENT_SRC_LOG_H_
#define METS_CLIENT_SRC_LOG_H_

#include "absl/strings/string_view.h"
#include "client/include/mets/mets.h"

namespace mets::client {

enum class LogLevel { kNotice = 0, kWarning = 1, kError = 2 };

// Writes "mets: <line>" to stderr, or gives the line to the program's function.
// Thread-safe.
void Log(LogLevel level, absl::string_view line);
void SetLog(mets_log_function function, void* user);

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_LOG_H_
