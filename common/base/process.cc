#include "common/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

// A file of /proc, which may have no size. At most 64 KiB are read.
absl::StatusOr<std::string> ReadProcFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) return ErrnoToStatus(errno, absl::StrCat("open ", path));
  std::string text(64 << 10, '\0');
  size_t used = 0;
  while (used < text.size()) {
    const ssize_t n = read(fd.get(), &text[used], text.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == ESRCH) {
      return absl::NotFoundError(absl::StrCat(path, ": process has ended"));
    }
    if (n < 0) return ErrnoToStatus(errno, absl::StrCat("read ", path));
    if (n == 0) break;
    used += n;
  }
  text.resize(used);
  return text;
}

}  // namespace

absl::StatusOr<UniqueFd> OpenPidfd(pid_t pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (fd.ok()) return fd;
  if (errno == ESRCH) {
    return absl::NotFoundError(absl::StrCat("no process ", pid));
  }
  return ErrnoToStatus(errno, absl::StrCat("pidfd_open ", pid));
}

absl::StatusOr<pid_t> PidOfPidfd(int fd) {
  METS_ASSIGN_OR_RETURN(std::string text,
                        ReadProcFile(absl::StrCat("/proc/self/fdinfo/", fd)));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::vector<absl::string_view> field = absl::StrSplit(line, ":\t");
    int pid = 0;
    if (field.size() == 2 && field[0] == "Pid" &&
        absl::SimpleAtoi(field[1], &pid)) {
      return pid;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("descriptor ", fd, " is no pidfd"));
}

absl::StatusOr<uint64_t> ProcessStartTime(pid_t pid) {
  METS_ASSIGN_OR_RETURN(std::string text,
                        ReadProcFile(absl::StrCat("/proc/", pid, "/stat")));
  // The command name, in parentheses, may contain anything; the 20th field
  // after it is the start time (proc(5), field 22).
  const size_t end = text.rfind(')');
  if (end != std::string::npos) {
    std::vector<absl::string_view> fields = absl::StrSplit(
        absl::string_view(text).substr(end + 1), ' ', absl::SkipEmpty());
    uint64_t start = 0;
    if (fields.size() > 19 && absl::SimpleAtoi(fields[19], &start)) {
      return start;
    }
  }
  return absl::InternalError(absl::StrCat("unexpected /proc/", pid, "/stat"));
}

}  // namespace mets
