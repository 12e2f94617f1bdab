#include "client/src/log.h"

#include <unistd.h>

#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"

namespace mets::client {
namespace {

std::mutex log_mutex;
mets_log_function log_function = nullptr;
void* log_user = nullptr;

}  // namespace

void Log(LogLevel level, absl::string_view line) {
  mets_log_function function;
  void* user;
  {
    std::lock_guard<std::mutex> lock(log_mutex);
    function = log_function;
    user = log_user;
  }
  if (function != nullptr) {
    function(user, static_cast<int>(level), std::string(line).c_str());
    return;
  }
  const std::string text = absl::StrCat("mets: ", line, "\n");
  (void)!write(STDERR_FILENO, text.data(), text.size());
}

void SetLog(mets_log_function function, void* user) {
  std::lock_guard<std::mutex> lock(log_mutex);
  log_function = function;
  log_user = user;
}

}  // namespace mets::client
