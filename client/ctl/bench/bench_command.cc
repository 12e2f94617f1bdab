#include "client/ctl/bench/bench_command.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/bench/bench_report.h"
#include "client/ctl/bench/bench_worker.h"
#include "common/base/bytes.h"
#include "common/base/status_macros.h"

namespace mets::ctl {
namespace {

constexpr int kHandOvers = 5;
// After so long a quantum ends in which nothing runs.
constexpr absl::Duration kIdle = absl::Milliseconds(1500);
constexpr Bytes kMove = GiB(8);
constexpr Bytes kFresh = MiB(512);
constexpr Bytes kSmall = MiB(64);

// How much work is enough to measure, and what to expect: of CUDA devices what
// an H100 with PCIe 5 does, and what METS promises.
struct Scale {
  Bytes probe, raw;  // Held for plain copies; copied in all.
  Bytes piece;       // Of what moves.
  std::optional<double> raw_gbps, hand_over_ratio, oneway_ratio, cached_us,
      fresh_ms;
};

Scale ScaleOf(const std::string& kind) {
  if (kind == "host") {
    return {MiB(64), GiB(1), MiB(16), {}, {}, {}, 2.0, {}};
  }
  return {MiB(256), GiB(16), MiB(128), 50.0, 0.95, 0.97, 0.7, 1.0};
}

// Measures on one device. Each step is one method, in the order of Run.
class Bench {
 public:
  Bench(v1::DeviceStatus device, Bytes move, std::string run_dir)
      : device_(std::move(device)),
        scale_(ScaleOf(device_.kind())),
        pool_(static_cast<int64_t>(device_.pool_bytes())),
        piece_(
            std::min({scale_.piece, Bytes(pool_.count() / 16).RoundUpTo(MiB(1)),
                      MiB(move / MiB(2))})),
        hold_(Bytes((pool_ + move).count() / 2).RoundUpTo(piece_)),
        moved_(2.0 * (2 * hold_ - pool_).count()),
        run_dir_(std::move(run_dir)) {}

  absl::StatusOr<BenchReport> Run() {
    report_.device = device_.id();
    report_.kind = device_.kind();
    METS_RETURN_IF_ERROR(MakeChunks());
    METS_RETURN_IF_ERROR(Start("mets-bench-1", &first_));
    METS_RETURN_IF_ERROR(Start("mets-bench-2", &second_));
    METS_RETURN_IF_ERROR(MeasureBus());
    METS_RETURN_IF_ERROR(MeasureAllocations());
    METS_RETURN_IF_ERROR(MeasureHandOver());
    return report_;
  }

 private:
  absl::Status Start(const char* job, std::optional<BenchWorker>* worker) {
    METS_ASSIGN_OR_RETURN(BenchWorker started,
                          BenchWorker::Start(job, run_dir_));
    *worker = std::move(started);
    return (*worker)
        ->Ask(absl::StrCat("open ", device_.id(), " ", scale_.probe.count()))
        .status();
  }

  // A pool is made as it is used: a job that has had all of it leaves free
  // chunks behind.
  absl::Status MakeChunks() {
    std::optional<BenchWorker> worker;
    METS_RETURN_IF_ERROR(Start("mets-bench-1", &worker));
    return worker
        ->Ask(absl::StrCat("hold ", pool_.count(), " ", piece_.count()))
        .status();
  }

  void Add(const char* key, const std::string& text, double value,
           const char* unit, std::optional<double> at_least,
           std::optional<double> at_most = {}) {
    report_.figures.push_back({key, text, value, unit, at_least, at_most});
  }

  absl::Status MeasureBus() {
    const int64_t times = scale_.raw / scale_.probe;
    const double gigabytes = 1e-9 * scale_.raw.count();
    const std::string out = absl::StrCat("raw-out ", times);
    const std::string in = absl::StrCat("raw-in ", times);
    METS_ASSIGN_OR_RETURN(const double out_s, first_->Ask(out));
    METS_ASSIGN_OR_RETURN(const double in_s, first_->Ask(in));
    Add("raw_out_gbps", "plain copies to the host", gigabytes / out_s, "GB/s",
        scale_.raw_gbps);
    Add("raw_in_gbps", "plain copies from the host", gigabytes / in_s, "GB/s",
        scale_.raw_gbps);
    METS_RETURN_IF_ERROR(first_->Tell(out));
    METS_RETURN_IF_ERROR(second_->Tell(in));
    METS_ASSIGN_OR_RETURN(const double first_s, first_->Answer());
    METS_ASSIGN_OR_RETURN(const double second_s, second_->Answer());
    both_gbps_ = 2 * gigabytes / std::max(first_s, second_s);
    out_gbps_ = gigabytes / out_s;
    in_gbps_ = gigabytes / in_s;
    Add("raw_both_gbps", "both at once, two processes", both_gbps_, "GB/s", {});
    return absl::OkStatus();
  }

  absl::Status MeasureAllocations() {
    const Bytes fresh = std::min(kFresh, Bytes(pool_.count() / 8));
    METS_ASSIGN_OR_RETURN(
        const double fresh_s,
        first_->Ask(absl::StrCat("fresh ", fresh.count(), " 4")));
    Add("fresh_ms", absl::StrCat("a new buffer of ", FormatBytes(fresh)),
        fresh_s * 1e3, "ms", {}, scale_.fresh_ms);
    const Bytes small = std::min(kSmall, fresh);
    const std::string amount = absl::StrCat(" ", small.count(), " ");
    METS_ASSIGN_OR_RETURN(const double cached,
                          first_->Ask(absl::StrCat("cached", amount, 100000)));
    Add("alloc_cached_us",
        absl::StrCat("allocate and free ", FormatBytes(small), ", cached"),
        cached * 1e6, "us", {}, scale_.cached_us);
    METS_ASSIGN_OR_RETURN(const double native,
                          first_->Ask(absl::StrCat("native", amount, 20)));
    Add("alloc_native_us", "the same by the device's own allocator",
        native * 1e6, "us", {});
    const absl::StatusOr<double> pooled =
        first_->Ask(absl::StrCat("native-pool", amount, 10000));
    if (pooled.ok()) {
      Add("alloc_native_pool_us", "the same by cudaMallocAsync", *pooled * 1e6,
          "us", {});
    }
    return absl::OkStatus();
  }

  // `to` waits for the device, which `from` has and does not use. Once `from`
  // wants it back, what it holds may leave. Bytes a second until `to` has it.
  absl::StatusOr<double> HandOver(BenchWorker& from, BenchWorker& to) {
    absl::SleepFor(kIdle);
    const absl::Time begin = absl::Now();
    METS_RETURN_IF_ERROR(from.Tell("turn"));
    METS_RETURN_IF_ERROR(to.Answer().status());
    const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    return moved_ / seconds;
  }

  // What both hold exceeds the pool by what moves.
  absl::Status MeasureHandOver() {
    const std::string hold =
        absl::StrCat("hold ", hold_.count(), " ", piece_.count());
    METS_RETURN_IF_ERROR(first_->Ask(hold).status());
    METS_RETURN_IF_ERROR(second_->Tell(hold));
    METS_RETURN_IF_ERROR(HandOver(*first_, *second_).status());
    METS_ASSIGN_OR_RETURN(const double first, HandOver(*second_, *first_));
    METS_RETURN_IF_ERROR(HandOver(*first_, *second_).status());
    std::vector<double> rates(kHandOvers);
    for (int i = 0; i < kHandOvers; ++i) {
      std::optional<BenchWorker>* ends[] = {&first_, &second_};
      if (i % 2 == 0) std::swap(ends[0], ends[1]);
      METS_ASSIGN_OR_RETURN(rates[i], HandOver(**ends[0], **ends[1]));
    }
    std::sort(rates.begin(), rates.end());
    const double gbps = 1e-9 * rates[kHandOvers / 2];
    const std::string text = absl::StrCat(
        "hand-over of ", FormatBytes(2 * hold_ - pool_), ", both ways");
    Add("hand_over_first_gbps", absl::StrCat(text, ", the first"), 1e-9 * first,
        "GB/s", {});
    Add("hand_over_gbps", text, gbps, "GB/s", {});
    Add("hand_over_ratio", "of the plain copies both ways", gbps / both_gbps_,
        "", scale_.hand_over_ratio);
    return MeasureOneWay(hold);
  }

  // Bytes a second until `to`, which waits for memory, has what moves, from the
  // moment at which `from` is told `command`.
  absl::StatusOr<double> OneWay(BenchWorker& from, const std::string& command,
                                BenchWorker& to, double bytes) {
    absl::SleepFor(kIdle);
    const absl::Time begin = absl::Now();
    METS_RETURN_IF_ERROR(from.Tell(command));
    METS_RETURN_IF_ERROR(to.Answer().status());
    return bytes / absl::ToDoubleSeconds(absl::Now() - begin);
  }

  // The first job has the device, and the second waits for its turn: it comes
  // back when the first frees all. Then the first takes as much memory anew as
  // it had, what is free and what has to leave of the second's for it.
  absl::Status MeasureOneWay(const std::string& hold) {
    METS_ASSIGN_OR_RETURN(const double in,
                          OneWay(*first_, "drop", *second_, moved_ / 2));
    METS_RETURN_IF_ERROR(first_->Answer().status());
    METS_RETURN_IF_ERROR(first_->Tell(hold));
    METS_ASSIGN_OR_RETURN(const double out,
                          OneWay(*second_, "turn", *first_, moved_ / 2));
    Add("hand_over_in_gbps", "only what comes in", 1e-9 * in, "GB/s", {});
    Add("hand_over_out_gbps", "only what goes out", 1e-9 * out, "GB/s", {});
    Add("hand_over_oneway_ratio", "of the plain copies one way",
        std::min(1e-9 * in / in_gbps_, 1e-9 * out / out_gbps_), "",
        scale_.oneway_ratio);
    return absl::OkStatus();
  }

  const v1::DeviceStatus device_;
  const Scale scale_;
  const Bytes pool_, piece_;
  const Bytes hold_;    // What each job has: whole pieces, together more than
                        // the pool by what moves.
  const double moved_;  // Bytes of a hand-over, both ways.
  const std::string run_dir_;
  BenchReport report_;
  double out_gbps_ = 0, in_gbps_ = 0, both_gbps_ = 0;
  std::optional<BenchWorker> first_, second_;
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
  // The pool is filled with pieces of half of it, which are not to be many.
  const Bytes least = Bytes(pool.count() / 256).RoundUpTo(MiB(2));
  Bytes move = std::min(kMove, most);
  if (!options.move.empty()) {
    METS_ASSIGN_OR_RETURN(move, ParseBytes(options.move));
  }
  if (move >= least && move <= most) return move;
  return absl::InvalidArgumentError(absl::StrCat(
      "--move ", FormatBytes(move), ": with a pool of ", FormatBytes(pool),
      " and swap space of ", FormatBytes(swap), " it is at least ",
      FormatBytes(least), " and at most ", FormatBytes(most)));
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
