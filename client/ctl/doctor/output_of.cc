#include "client/ctl/doctor/output_of.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/unique_fd.h"

namespace mets::ctl {
namespace {

constexpr int kNotFound = 127;

[[noreturn]] void Exec(std::vector<char*> argv, int out, int errors) {
  dup2(out, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  dup2(open("/dev/null", O_RDWR), STDIN_FILENO);
  execvp(argv[0], argv.data());
  _exit(kNotFound);
}

std::string ReadAll(int fd) {
  std::string text;
  char part[4096];
  while (true) {
    const ssize_t n = read(fd, part, sizeof(part));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(part, n);
  }
}

// ": " and the first line of a file; empty where it has none.
std::string FirstLine(int fd) {
  char text[400];
  const ssize_t n = pread(fd, text, sizeof(text), 0);
  if (n <= 0) return "";
  const absl::string_view all(text, n);
  return absl::StrCat(": ", all.substr(0, all.find('\n')));
}

}  // namespace

absl::StatusOr<std::string> OutputOf(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoToStatus(errno, "pipe");
  UniqueFd from(ends[0]), to(ends[1]);
  const UniqueFd errors(memfd_create("errors", MFD_CLOEXEC));
  if (!errors.ok()) return ErrnoToStatus(errno, "memfd_create");
  const pid_t pid = fork();
  if (pid < 0) return ErrnoToStatus(errno, "fork");
  if (pid == 0) Exec(argv, to.get(), errors.get());
  to = UniqueFd();
  const std::string text = ReadAll(from.get());
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound) {
    return absl::NotFoundError(absl::StrCat("no program ", words[0]));
  }
  return absl::InternalError(
      absl::StrCat(words[0], " failed", FirstLine(errors.get())));
}

}  // namespace mets::ctl
