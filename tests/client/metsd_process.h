// MetsdProcess: a real metsd in a directory of its own.
#ifndef METS_TESTS_CLIENT_METSD_PROCESS_H_
#define METS_TESTS_CLIENT_METSD_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace mets::client {

// Starts with the object or by Start, which returns once the daemon says
// "ready". Killed with the object. Not thread-safe. `pool` is the size of a
// host device, or a whole device ("cuda:0:1GiB").
class MetsdProcess {
 public:
  explicit MetsdProcess(std::string pool, std::string swap = "1GiB")
      : pool_(std::move(pool)), swap_(std::move(swap)) {
    char name[] = "/tmp/mets-client-XXXXXX";
    METS_CHECK(mkdtemp(name) != nullptr);
    dir_ = name;
    Start();
  }
  ~MetsdProcess() {
    Kill();
    METS_CHECK(system(absl::StrCat("rm -rf ", dir_).c_str()) == 0);
  }
  MetsdProcess(const MetsdProcess&) = delete;
  MetsdProcess& operator=(const MetsdProcess&) = delete;

  const std::string& run_dir() const { return dir_; }
  pid_t pid() const { return pid_; }

  void Start() {
    int ends[2];
    METS_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDERR_FILENO);
      const bool whole = absl::StrContains(pool_, ':');
      const std::string device = absl::StrCat(whole ? "" : "host:", pool_);
      execl(Program(), "metsd", "--run-dir", dir_.c_str(), "--device",
            device.c_str(), "--swap-space", swap_.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    AwaitReady(ends[0]);
    drain_ = ends[0];
  }

  // As kill -9 does.
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(drain_);
    pid_ = 0;
  }

 private:
  // A bundle has it elsewhere than the build.
  static const char* Program() {
    const char* path = getenv("METS_TEST_METSD");
    return path != nullptr ? path : METS_TEST_METSD;
  }
  static void AwaitReady(int fd) {
    std::string seen;
    char text[512];
    while (seen.find("ready") == std::string::npos) {
      const ssize_t n = read(fd, text, sizeof(text));
      METS_CHECK(n > 0) << "metsd did not start: " << seen;
      seen.append(text, n);
    }
    // Later lines must not block the daemon.
    fcntl(fd, F_SETPIPE_SZ, 1 << 20);
  }

  const std::string pool_;
  const std::string swap_;
  std::string dir_;
  pid_t pid_ = 0;
  int drain_ = -1;
};

}  // namespace mets::client

#endif  // METS_TESTS_CLIENT_METSD_PROCESS_H_
