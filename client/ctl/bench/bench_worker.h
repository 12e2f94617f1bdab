// BenchWorker: a process between which and another `metsctl bench` measures.
#ifndef METS_CLIENT_CTL_BENCH_BENCH_WORKER_H_
#define METS_CLIENT_CTL_BENCH_BENCH_WORKER_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/ctl/bench/line_socket.h"

namespace mets::ctl {

// A mets-bench-worker (worker_main.cc has the commands), which uses a device
// through libmets as any other program does.
//
// Not thread-safe. Its end ends the process.
class BenchWorker {
 public:
  // `job` is its job's name.
  static absl::StatusOr<BenchWorker> Start(const std::string& job,
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
  BenchWorker(LineSocket socket, int pid)
      : socket_(std::move(socket)), pid_(pid) {}

  LineSocket socket_;
  int pid_;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_BENCH_BENCH_WORKER_H_
