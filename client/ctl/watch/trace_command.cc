#include "client/ctl/watch/trace_command.h"

#include <cstdio>
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

// Asks in a thread of its own what the job has.
class MemoryWatch {
 public:
  MemoryWatch(AdminClient client, std::string job)
      : client_(std::move(client)),
        job_(std::move(job)),
        thread_([this] { Run(); }) {}

  std::vector<MemoryPoint> Stop() {
    stop_.Notify();
    thread_.join();
    return std::move(points_);
  }

 private:
  void Run() {
    do {
      const auto status = client_.GetStatus();
      if (!status.ok()) continue;
      for (const v1::JobStatus& job : status->jobs()) {
        if (job.name() != job_) continue;
        points_.push_back({absl::ToUnixMicros(absl::Now()), job.device(),
                           job.resident_bytes(), job.swapped_bytes(),
                           job.pinned_bytes()});
      }
    } while (!stop_.WaitForNotificationWithTimeout(kPeriod));
  }

  AdminClient client_;
  const std::string job_;
  std::vector<MemoryPoint> points_;
  absl::Notification stop_;
  std::thread thread_;
};

absl::Status Write(const std::string& file, const std::string& text) {
  METS_ASSIGN_OR_RETURN(const auto writer, trace::TextFileWriter::Create(file));
  METS_RETURN_IF_ERROR(writer->Append(text));
  return writer->Close();
}

}  // namespace

absl::Status TraceCommand(const TraceOptions& options,
                          const std::string& run_dir) {
  METS_RETURN_IF_ERROR(ValidateJobName(options.job));
  StopWatch::BlockSignals();
  METS_ASSIGN_OR_RETURN(AdminClient client, AdminClient::Connect(run_dir));
  METS_RETURN_IF_ERROR(client.ExplainJob(options.job).status());
  v1::WatchEventsRequest request;
  request.set_job(options.job);
  request.set_follow(true);
  request.set_details(true);
  if (options.past) request.set_newest(std::numeric_limits<uint32_t>::max());
  std::unique_ptr<AdminClient::EventStream> stream =
      client.WatchEvents(request);
  METS_ASSIGN_OR_RETURN(
      std::unique_ptr<StopWatch> watch,
      StopWatch::Start(options.limit, [&stream] { stream->Cancel(); }));
  METS_ASSIGN_OR_RETURN(AdminClient other, AdminClient::Connect(run_dir));
  MemoryWatch memory(std::move(other), options.job);
  std::vector<v1::Event> events;
  for (v1::Event event; stream->Read(&event);) events.push_back(event);
  watch = nullptr;
  const std::vector<MemoryPoint> points = memory.Stop();
  const absl::Status status = stream->Finish();
  METS_RETURN_IF_ERROR(
      Write(options.file, ChromeTrace(options.job, events, points)));
  std::printf("%s: %zu events; open it at https://ui.perfetto.dev\n",
              options.file.c_str(), events.size());
  return status;
}

}  // namespace mets::ctl
