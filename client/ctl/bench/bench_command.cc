#include "client/ctl/bench/bench_command.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/bench/bench_report.h"
#include "client/ctl/bench/bench_worker.h"
#include "common/base/bytes.h"
#include "common/base/status_macros.h"

namespace mets::ctl {
namespace {

constexpr int kHandOvers = 3;
constexpr Bytes kMove = GiB(8);
constexpr Bytes kFresh = MiB(512);
constexpr Bytes kSmall = MiB(64);

// How much work is enough to measure, and what to expect: of CUDA devices what
// an H100 with PCIe 5 does, and what METS promises.
struct Scale {
  Bytes probe, raw;  // Held for plain copies; copied in all.
  Bytes piece;       // Of what moves.
  std::optional<double> raw_gbps, hand_over_ratio, cached_us, fresh_ms;
};

Scale ScaleOf(const std::string& kind) {
  if (kind == "host") {
    return {MiB(64), GiB(1), MiB(16), {}, {}, 2.0, {}};
  }
  return {MiB(256), GiB(16), MiB(128), 50.0, 0.95, 0.7, 1.0};
}

// Measures on one device. Each step is one method, in the order of Run.
class Bench {
 public:
  Bench(v1::DeviceStatus device, Bytes move, std::string run_dir)
      : device_(std::move(device)),
        scale_(ScaleOf(device_.kind())),
        pool_(static_cast<int64_t>(device_.pool_bytes())),
        move_(move),
        run_dir_(std::move(run_dir)) {}

  absl::StatusOr<BenchReport> Run() {
    report_.device = device_.id();
    report_.kind = device_.kind();
    METS_RETURN_IF_ERROR(MakeChunks());
    METS_RETURN_IF_ERROR(Start("mets-bench-low", 0, &low_));
    METS_RETURN_IF_ERROR(Start("mets-bench-high", 1, &high_));
    METS_RETURN_IF_ERROR(MeasureBus());
    METS_RETURN_IF_ERROR(MeasureAllocations());
    METS_RETURN_IF_ERROR(MeasureHandOver());
    return report_;
  }

 private:
  absl::Status Start(const char* job, int priority,
                     std::optional<BenchWorker>* worker) {
    METS_ASSIGN_OR_RETURN(BenchWorker started,
                          BenchWorker::Start(job, priority, run_dir_));
    *worker = std::move(started);
    return (*worker)
        ->Ask(absl::StrCat("open ", device_.id(), " ", scale_.probe.count()))
        .status();
  }

  // A pool is made as it is used: a job that has had all of it leaves free
  // chunks behind.
  absl::Status MakeChunks() {
    std::optional<BenchWorker> worker;
    METS_RETURN_IF_ERROR(Start("mets-bench-low", 0, &worker));
    return worker
        ->Ask(absl::StrCat("hold ", pool_.count(), " ", scale_.piece.count()))
        .status();
  }

  void Add(const char* key, const char* text, double value, const char* unit,
           std::optional<double> at_least, std::optional<double> at_most = {}) {
    report_.figures.push_back({key, text, value, unit, at_least, at_most});
  }

  absl::Status MeasureBus() {
    const int64_t times = scale_.raw / scale_.probe;
    const double gigabytes = 1e-9 * scale_.raw.count();
    const std::string out = absl::StrCat("raw-out ", times);
    const std::string in = absl::StrCat("raw-in ", times);
    METS_ASSIGN_OR_RETURN(const double out_s, low_->Ask(out));
    METS_ASSIGN_OR_RETURN(const double in_s, low_->Ask(in));
    Add("raw_out_gbps", "plain copies to the host", gigabytes / out_s, "GB/s",
        scale_.raw_gbps);
    Add("raw_in_gbps", "plain copies from the host", gigabytes / in_s, "GB/s",
        scale_.raw_gbps);
    METS_RETURN_IF_ERROR(low_->Tell(out));
    METS_RETURN_IF_ERROR(high_->Tell(in));
    METS_ASSIGN_OR_RETURN(const double low_s, low_->Answer());
    METS_ASSIGN_OR_RETURN(const double high_s, high_->Answer());
    both_gbps_ = 2 * gigabytes / std::max(low_s, high_s);
    Add("raw_both_gbps", "both at once, two processes", both_gbps_, "GB/s", {});
    return absl::OkStatus();
  }

  absl::Status MeasureAllocations() {
    const Bytes fresh = std::min(kFresh, Bytes(pool_.count() / 8));
    METS_ASSIGN_OR_RETURN(
        const double fresh_s,
        low_->Ask(absl::StrCat("fresh ", fresh.count(), " 4")));
    Add("fresh_ms", "new buffer of 512 MiB (or pool / 8)", fresh_s * 1e3, "ms",
        {}, scale_.fresh_ms);
    const Bytes small = std::min(kSmall, fresh);
    const std::string amount = absl::StrCat(" ", small.count(), " ");
    METS_ASSIGN_OR_RETURN(const double cached,
                          low_->Ask(absl::StrCat("cached", amount, 100000)));
    Add("alloc_cached_us", "allocate and free 64 MiB, METS, cached",
        cached * 1e6, "us", {}, scale_.cached_us);
    METS_ASSIGN_OR_RETURN(const double native,
                          low_->Ask(absl::StrCat("native", amount, 20)));
    Add("alloc_native_us", "the same, the device's own allocator", native * 1e6,
        "us", {});
    const absl::StatusOr<double> pooled =
        low_->Ask(absl::StrCat("native-pool", amount, 10000));
    if (pooled.ok()) {
      Add("alloc_native_pool_us", "the same, cudaMallocAsync", *pooled * 1e6,
          "us", {});
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Moved() {
    METS_ASSIGN_OR_RETURN(const double low, low_->Ask("moved"));
    METS_ASSIGN_OR_RETURN(const double high, high_->Ask("moved"));
    return low + high;
  }

  // The job of the higher class takes its turn, and the other takes it back
  // when it is over: what both hold does not fit.
  absl::StatusOr<double> HandOver() {
    METS_ASSIGN_OR_RETURN(const double before, Moved());
    METS_ASSIGN_OR_RETURN(const double seconds, high_->Ask("turn"));
    METS_ASSIGN_OR_RETURN(const double after, Moved());
    return 1e-9 * (after - before) / seconds;
  }

  absl::Status MeasureHandOver() {
    const std::string hold = absl::StrCat(
        "hold ", ((pool_ + move_).count() / 2), " ", scale_.piece.count());
    METS_RETURN_IF_ERROR(low_->Ask(hold).status());
    METS_RETURN_IF_ERROR(low_->Ask("loop").status());
    METS_RETURN_IF_ERROR(high_->Ask(hold).status());
    std::vector<double> gbps;
    METS_ASSIGN_OR_RETURN(const double first, HandOver());
    for (int i = 0; i < kHandOvers; ++i) {
      METS_ASSIGN_OR_RETURN(gbps.emplace_back(), HandOver());
    }
    METS_RETURN_IF_ERROR(high_->Tell("loop"));  // So that the other can stop.
    METS_RETURN_IF_ERROR(low_->Ask("stop").status());
    std::sort(gbps.begin(), gbps.end());
    const double median = gbps[kHandOvers / 2];
    Add("hand_over_first_gbps", "hand-over, both ways, the first", first,
        "GB/s", {});
    Add("hand_over_gbps", "hand-over, both ways", median, "GB/s", {});
    Add("hand_over_ratio", "of the plain copies both ways", median / both_gbps_,
        "", scale_.hand_over_ratio);
    return absl::OkStatus();
  }

  const v1::DeviceStatus device_;
  const Scale scale_;
  const Bytes pool_, move_;
  const std::string run_dir_;
  BenchReport report_;
  double both_gbps_ = 0;
  std::optional<BenchWorker> low_, high_;
};

absl::StatusOr<v1::DeviceStatus> FindIdle(const v1::GetStatusResponse& status,
                                          const std::string& id) {
  for (const v1::DeviceStatus& device : status.devices()) {
    if (!id.empty() && device.id() != id) continue;
    std::vector<std::string> jobs;
    for (const v1::JobStatus& job : status.jobs()) {
      if (job.device() == device.id() && job.sessions() > 0) {
        jobs.push_back(job.name());
      }
    }
    if (jobs.empty()) return device;
    return absl::FailedPreconditionError(absl::StrCat(
        "device ", device.id(), " is in use by ", absl::StrJoin(jobs, ", "),
        ": measure when nothing else runs there"));
  }
  return absl::NotFoundError(
      absl::StrCat("no device '", id, "'; `metsctl devices` shows them"));
}

// What each hand-over moves each way.
absl::StatusOr<Bytes> MoveOf(const BenchOptions& options,
                             const v1::DeviceStatus& device) {
  // Not all of the swap space: it is made in pieces.
  const Bytes pool(static_cast<int64_t>(device.pool_bytes()));
  const Bytes swap(static_cast<int64_t>(device.swap_limit_bytes()));
  const Bytes most =
      std::min(Bytes(pool.count() / 10 * 8), Bytes(swap.count() / 10 * 4));
  if (options.move.empty()) return std::min(kMove, most);
  METS_ASSIGN_OR_RETURN(const Bytes move, ParseBytes(options.move));
  if (move > Bytes() && move <= most) return move;
  return absl::InvalidArgumentError(
      absl::StrCat("--move ", FormatBytes(move), ": with a pool of ",
                   FormatBytes(pool), " and swap space of ", FormatBytes(swap),
                   " it is at most ", FormatBytes(most)));
}

}  // namespace

absl::Status BenchCommand(const BenchOptions& options,
                          const std::string& run_dir) {
  METS_ASSIGN_OR_RETURN(AdminClient client, AdminClient::Connect(run_dir));
  METS_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, client.GetStatus());
  METS_ASSIGN_OR_RETURN(const v1::DeviceStatus device,
                        FindIdle(status, options.device));
  METS_ASSIGN_OR_RETURN(const Bytes move, MoveOf(options, device));
  METS_ASSIGN_OR_RETURN(const BenchReport report,
                        Bench(device, move, run_dir).Run());
  std::fputs((options.json ? ToJson(report) : ToTable(report)).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace mets::ctl
