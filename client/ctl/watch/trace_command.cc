#include "client/ctl/watch/trace_command.h"

#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/stop_watch.h"
#include "client/ctl/watch/chrome_trace.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "common/trace/text_file.h"

namespace mets::ctl {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(100);

// What it has on each device; nothing when no process of it runs.
absl::StatusOr<std::vector<v1::JobStatus>> Holdings(AdminClient& client,
                                                    const std::string& job) {
  METS_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, client.GetStatus());
  std::vector<v1::JobStatus> holdings;
  for (const v1::JobStatus& entry : status.jobs()) {
    if (entry.name() == job && entry.sessions() > 0) holdings.push_back(entry);
  }
  return holdings;
}

// Asks in a thread of its own what the job has.
class MemoryWatch {
 public:
  // `on_end` is called when the job has ended, a period later: events of its
  // end are on their way.
  MemoryWatch(AdminClient client, std::string job, std::function<void()> on_end)
      : client_(std::move(client)),
        job_(std::move(job)),
        on_end_(std::move(on_end)),
        thread_([this] { Run(); }) {}

  std::vector<MemoryPoint> Stop() {
    stop_.Notify();
    thread_.join();
    return std::move(points_);
  }

 private:
  void Run() {
    bool ended = false;
    do {
      if (ended) return on_end_();
      const auto holdings = Holdings(client_, job_);
      if (!holdings.ok()) continue;
      ended = holdings->empty();
      for (const v1::JobStatus& job : *holdings) {
        points_.push_back({absl::ToUnixMicros(absl::Now()), job.device(),
                           job.resident_bytes(), job.swapped_bytes(),
                           job.pinned_bytes()});
      }
    } while (!stop_.WaitForNotificationWithTimeout(kPeriod));
  }

  AdminClient client_;
  const std::string job_;
  const std::function<void()> on_end_;
  std::vector<MemoryPoint> points_;
  absl::Notification stop_;
  std::thread thread_;
};

}  // namespace

absl::Status TraceCommand(const TraceOptions& options,
                          const std::string& run_dir) {
  METS_RETURN_IF_ERROR(ValidateJobName(options.job));
  StopWatch::BlockSignals();
  METS_ASSIGN_OR_RETURN(AdminClient client, AdminClient::Connect(run_dir));
  METS_RETURN_IF_ERROR(client.ExplainJob(options.job).status());
  METS_ASSIGN_OR_RETURN(const auto holdings, Holdings(client, options.job));
  const bool runs = !holdings.empty();
  // Before anything is recorded that it could not take.
  METS_ASSIGN_OR_RETURN(const auto file,
                        trace::TextFileWriter::Create(options.file));
  if (runs && options.limit == absl::InfiniteDuration()) {
    std::fprintf(stderr, "tracing '%s' until it ends, or Ctrl-C\n",
                 options.job.c_str());
  }
  v1::WatchEventsRequest request;
  request.set_job(options.job);
  request.set_follow(runs);
  request.set_details(true);
  if (options.past || !runs)
    request.set_newest(std::numeric_limits<uint32_t>::max());
  std::unique_ptr<AdminClient::EventStream> stream =
      client.WatchEvents(request);
  METS_ASSIGN_OR_RETURN(
      std::unique_ptr<StopWatch> watch,
      StopWatch::Start(options.limit, [&stream] { stream->Cancel(); }));
  METS_ASSIGN_OR_RETURN(AdminClient other, AdminClient::Connect(run_dir));
  MemoryWatch memory(std::move(other), options.job, [&stream, runs] {
    if (runs) stream->Cancel();
  });
  std::vector<v1::Event> events;
  for (v1::Event event; stream->Read(&event);) events.push_back(event);
  watch = nullptr;
  const std::vector<MemoryPoint> points = memory.Stop();
  const absl::Status status = stream->Finish();
  METS_RETURN_IF_ERROR(
      file->Append(ChromeTrace(options.job, events, points)));
  METS_RETURN_IF_ERROR(file->Close());
  std::printf("%s: %zu events; open it at https://ui.perfetto.dev\n",
              options.file.c_str(), events.size());
  return status;
}

}  // namespace mets::ctl
