// The processes between which `metsctl bench` measures.
#ifndef METS_CLIENT_CTL_BENCH_BENCH_WORKER_H_
#define METS_CLIENT_CTL_BENCH_BENCH_WORKER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace mets::ctl {

// Serves one command after the other (see bench_worker.cc) from the socket
// `fd`, one line each, until it is closed. The other end is a BenchWorker. For
// the process that BenchWorker::Start starts.
int ServeBench(int fd);

// A process that uses a device through libmets, as any other program does.
//
// Not thread-safe. Its end ends the process.
class BenchWorker {
 public:
  // `job` is its job's name, `priority` its job's class.
  static absl::StatusOr<BenchWorker> Start(const std::string& job, int priority,
                                           const std::string& run_dir);
  BenchWorker(BenchWorker&&) = default;
  BenchWorker& operator=(BenchWorker&&) = default;
  ~BenchWorker();

  // Sends a command and waits for the number that answers it.
  absl::StatusOr<double> Ask(const std::string& command);
  // The two halves of Ask, so that two workers can do something at once.
  absl::Status Tell(const std::string& command);
  absl::StatusOr<double> Answer();

 private:
  BenchWorker(UniqueFd fd, int pid) : fd_(std::move(fd)), pid_(pid) {}

  UniqueFd fd_;
  int pid_;
  std::string received_;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_BENCH_BENCH_WORKER_H_
