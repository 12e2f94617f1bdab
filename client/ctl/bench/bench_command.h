// `metsctl bench`: what a device and METS do on this machine.
#ifndef METS_CLIENT_CTL_BENCH_BENCH_COMMAND_H_
#define METS_CLIENT_CTL_BENCH_BENCH_COMMAND_H_

#include <string>

#include "absl/status/status.h"

namespace mets::ctl {

struct BenchOptions {
  std::string device;  // Empty: the first.
  std::string move;    // A size: the least that a hand-over moves each way;
                       // empty: 8 GiB, or what pool and swap space allow.
  bool json = false;
};

// Measures with two jobs of its own ("mets-bench-1" and "mets-bench-2"),
// and prints what was expected beside it. FAILED_PRECONDITION when the device
// is in use.
absl::Status BenchCommand(const BenchOptions& options,
                          const std::string& run_dir);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_BENCH_BENCH_COMMAND_H_
