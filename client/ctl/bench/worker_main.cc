// mets-bench-worker: a program that uses a device through libmets as any other
// does, and measures. `metsctl bench` starts two, with a socket as standard
// input. Commands, each answered by "ok NUMBER" or "error TEXT":
//   open DEVICE PROBE_BYTES     attaches the device          → pool bytes
//   raw-out TIMES, raw-in TIMES plain copies of the probe    → seconds
//   native BYTES TIMES          the device's allocator       → seconds each
//   native-pool BYTES TIMES     the one that keeps memory    → seconds each
//   cached BYTES TIMES          alloc and free, from libmets → seconds each
//   fresh BYTES TIMES           alloc, all kept until the end → median seconds
//   hold BYTES PIECE            allocates buffers            → bytes
//   drop                        frees them                   → bytes
//   turn                        enters and leaves the gate   → seconds to enter
#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/bench/line_socket.h"
#include "common/base/status_macros.h"
#include "common/device/cuda/cuda_devices.h"
#include "common/device/host/host_bus_probe.h"
#include "mets/mets.h"

namespace mets::ctl {
namespace {

class Worker {
 public:
  absl::StatusOr<double> Do(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "open") {
      std::string id;
      int64_t probe = 0;
      words >> id >> probe;
      return Open(id, Bytes(probe));
    }
    int64_t bytes = 0, number = 1;
    words >> bytes >> number;
    if (command == "raw-out" || command == "raw-in") {
      return Raw(command == "raw-out", static_cast<int>(bytes));
    }
    if (command == "native" || command == "native-pool") {
      METS_ASSIGN_OR_RETURN(
          const absl::Duration each,
          command == "native"
              ? probe_->AllocateAndFree(Bytes(bytes), static_cast<int>(number))
              : probe_->AllocateFromPool(Bytes(bytes),
                                         static_cast<int>(number)));
      return absl::ToDoubleSeconds(each);
    }
    if (command == "cached") return Cached(bytes, number);
    if (command == "fresh") return Fresh(bytes, number);
    if (command == "hold") return Hold(bytes, number);
    if (command == "drop") return Drop();
    if (command == "turn") return Turn();
    return absl::InvalidArgumentError(absl::StrCat("unknown: ", line));
  }

 private:
  absl::Status FromMets(mets_status status) const {
    if (status == METS_OK) return absl::OkStatus();
    return absl::FailedPreconditionError(mets_last_error());
  }

  absl::StatusOr<double> Open(const std::string& id, Bytes probe) {
    mets_open_options options = METS_OPEN_OPTIONS_INIT;
    mets_client* client = nullptr;
    METS_RETURN_IF_ERROR(FromMets(mets_open(&options, &client)));
    METS_RETURN_IF_ERROR(
        FromMets(mets_device_open(client, id.c_str(), METS_GATED, &device_)));
    mets_device_info info = METS_DEVICE_INFO_INIT;
    METS_RETURN_IF_ERROR(FromMets(mets_device_get_info(device_, &info)));
    if (std::string(info.kind) == "host") {
      probe_ = std::make_unique<HostBusProbe>(probe);
    } else {
      METS_ASSIGN_OR_RETURN(probe_, OpenCudaBusProbe(id, probe));
    }
    // What is set up when it is used first does not count.
    METS_RETURN_IF_ERROR(probe_->CopyOut(1));
    METS_RETURN_IF_ERROR(probe_->CopyIn(1));
    return static_cast<double>(info.pool_bytes);
  }

  absl::StatusOr<double> Raw(bool out, int times) {
    const absl::Time begin = absl::Now();
    METS_RETURN_IF_ERROR(out ? probe_->CopyOut(times) : probe_->CopyIn(times));
    return absl::ToDoubleSeconds(absl::Now() - begin);
  }

  absl::StatusOr<void*> Allocate(int64_t bytes) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes;
    options.mobility = METS_HELD;
    void* address = nullptr;
    METS_RETURN_IF_ERROR(FromMets(mets_alloc(device_, &options, &address)));
    return address;
  }

  absl::StatusOr<double> Cached(int64_t bytes, int64_t times) {
    METS_RETURN_IF_ERROR(FromMets(mets_gate_enter(device_)));
    absl::Time begin;
    for (int64_t i = -1; i < times; ++i) {
      if (i == 0) begin = absl::Now();
      METS_ASSIGN_OR_RETURN(void* address, Allocate(bytes));
      mets_free(device_, address, nullptr);
    }
    const double each = absl::ToDoubleSeconds(absl::Now() - begin) / times;
    mets_gate_leave(device_);
    return each;
  }

  absl::StatusOr<double> Fresh(int64_t bytes, int64_t times) {
    METS_RETURN_IF_ERROR(FromMets(mets_gate_enter(device_)));
    std::vector<void*> kept;
    std::vector<double> seconds;
    for (int64_t i = 0; i < times; ++i) {
      const absl::Time begin = absl::Now();
      METS_ASSIGN_OR_RETURN(void* address, Allocate(bytes));
      seconds.push_back(absl::ToDoubleSeconds(absl::Now() - begin));
      kept.push_back(address);
    }
    for (void* address : kept) mets_free(device_, address, nullptr);
    mets_gate_leave(device_);
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }

  absl::StatusOr<double> Hold(int64_t bytes, int64_t piece) {
    METS_RETURN_IF_ERROR(FromMets(mets_gate_enter(device_)));
    int64_t held = 0;
    for (; held + piece <= bytes; held += piece) {
      METS_ASSIGN_OR_RETURN(void* address, Allocate(piece));
      held_.push_back({address, piece});
    }
    mets_gate_leave(device_);
    mets_step_hint(device_);
    return static_cast<double>(held);
  }

  absl::StatusOr<double> Drop() {
    int64_t dropped = 0;
    for (const auto& [address, bytes] : held_) {
      mets_free(device_, address, nullptr);
      dropped += bytes;
    }
    held_.clear();
    return static_cast<double>(dropped);
  }

  absl::StatusOr<double> Turn() {
    const absl::Time begin = absl::Now();
    METS_RETURN_IF_ERROR(FromMets(mets_gate_enter(device_)));
    const double waited = absl::ToDoubleSeconds(absl::Now() - begin);
    mets_gate_leave(device_);
    mets_step_hint(device_);
    return waited;
  }

  mets_device* device_ = nullptr;
  std::unique_ptr<BusProbe> probe_;
  std::vector<std::pair<void*, int64_t>> held_;  // Address, bytes.
};

int Serve() {
  LineSocket parent{UniqueFd(STDIN_FILENO)};
  Worker worker;
  std::string line;
  while (parent.Read(&line)) {
    const absl::StatusOr<double> answer = worker.Do(line);
    std::string text = answer.ok()
                           ? absl::StrCat("ok ", *answer)
                           : absl::StrCat("error ", answer.status().message());
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (!parent.Write(text)) break;
  }
  _exit(0);  // The session ends with the process.
}

}  // namespace
}  // namespace mets::ctl

int main() { return mets::ctl::Serve(); }
