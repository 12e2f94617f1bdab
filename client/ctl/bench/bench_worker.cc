#include "client/ctl/bench/bench_worker.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/ctl/program_folder.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets::ctl {

absl::StatusOr<BenchWorker> BenchWorker::Start(const std::string& job,
                                               const std::string& run_dir) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoToStatus(errno, "socketpair");
  }
  UniqueFd ours(ends[0]), theirs(ends[1]);
  const std::string program = ProgramFolder() + "/mets-bench-worker";
  const int pid = fork();
  if (pid < 0) return ErrnoToStatus(errno, "fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(theirs.get(), STDIN_FILENO) < 0) _exit(1);
    setenv("METS_JOB", job.c_str(), 1);
    setenv("METS_RUN_DIR", run_dir.c_str(), 1);
    execl(program.c_str(), program.c_str(), nullptr);
    _exit(1);
  }
  return BenchWorker(LineSocket(std::move(ours)), pid);
}

BenchWorker::~BenchWorker() {
  if (!socket_.open()) return;
  socket_.Close();
  kill(pid_, SIGKILL);  // It may wait for its turn.
  waitpid(pid_, nullptr, 0);
}

absl::Status BenchWorker::Tell(const std::string& command) {
  if (socket_.Write(command)) return absl::OkStatus();
  return absl::UnavailableError(
      "mets-bench-worker, which stands beside metsctl, cannot be started or "
      "has "
      "ended");
}

absl::StatusOr<double> BenchWorker::Answer() {
  std::string line;
  if (!socket_.Read(&line)) {
    return absl::UnavailableError(
        "mets-bench-worker, which stands beside metsctl, cannot be started or "
        "has "
        "ended");
  }
  absl::string_view text = line;
  double number = 0;
  if (absl::ConsumePrefix(&text, "ok ") && absl::SimpleAtod(text, &number)) {
    return number;
  }
  absl::ConsumePrefix(&text, "error ");
  return absl::FailedPreconditionError(text);
}

absl::StatusOr<double> BenchWorker::Ask(const std::string& command) {
  METS_RETURN_IF_ERROR(Tell(command));
  return Answer();
}

}  // namespace mets::ctl
