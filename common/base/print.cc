#include "common/base/print.h"

#include <cerrno>
#include <cstdio>

#include "common/base/errno_status.h"

namespace mets {

absl::Status Print(absl::string_view text) {
  // What buffers may still hold back shows here.
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0) {
    return absl::OkStatus();
  }
  return ErrnoToStatus(errno, "write the output");
}

}  // namespace mets
