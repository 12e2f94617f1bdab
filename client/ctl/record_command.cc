#include "client/ctl/record_command.h"

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/stop_watch.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "common/trace/text_file.h"
#include "common/trace/trace_format.h"

namespace mets::ctl {
namespace {

// Passes a trace's text to a file, line by line, and completes it when its
// sender has gone.
class Recording {
 public:
  explicit Recording(std::unique_ptr<trace::TextFileWriter> file)
      : file_(std::move(file)) {}

  absl::Status Append(absl::string_view text) {
    rest_.append(text.data(), text.size());
    const size_t end = rest_.rfind('\n');
    if (end == std::string::npos) return absl::OkStatus();
    const absl::string_view lines(rest_.data(), end + 1);
    Count(lines);
    METS_RETURN_IF_ERROR(file_->Append(lines));
    rest_.erase(0, end + 1);
    return absl::OkStatus();
  }

  // What a killed process has sent is a trace up to some moment.
  absl::Status Close() {
    if (!ended_ && lines_ >= kHeaderLines) {
      METS_RETURN_IF_ERROR(file_->Append(trace::FormatEnd(events())));
    }
    METS_RETURN_IF_ERROR(file_->Close());
    if (!error_.empty()) return absl::DataLossError(error_);
    return lines_ >= kHeaderLines
               ? absl::OkStatus()
               : absl::UnavailableError("the job has sent nothing");
  }

  uint64_t events() const { return lines_ - kHeaderLines; }
  uint64_t ops() const { return ops_; }
  bool complete() const { return ended_; }

 private:
  static constexpr uint64_t kHeaderLines = 2;

  void Count(absl::string_view lines) {
    while (!lines.empty()) {
      const size_t end = lines.find('\n');
      const absl::string_view line = lines.substr(0, end);
      lines.remove_prefix(end + 1);
      if (absl::StartsWith(line, trace::kEndMark)) {
        ended_ = true;
      } else if (absl::StartsWith(line, trace::kErrorMark)) {
        ended_ = true;
        error_ = std::string(line.substr(trace::kErrorMark.size()));
      } else {
        ++lines_;
        if (absl::StrContains(line, ",begin,")) ++ops_;
      }
    }
  }

  const std::unique_ptr<trace::TextFileWriter> file_;
  std::string rest_;  // Of a line.
  uint64_t lines_ = 0;
  uint64_t ops_ = 0;
  bool ended_ = false;
  std::string error_;
};

void Print(const RecordOptions& options, const Recording& recording,
           bool job_ended) {
  std::printf("%s: %" PRIu64 " events, %" PRIu64 " ops%s\n",
              options.file.c_str(), recording.events(), recording.ops(),
              !job_ended             ? ""
              : recording.complete() ? "; the job has ended"
                                     : "; the job's process has gone");
}

}  // namespace

absl::Status RecordCommand(const RecordOptions& options,
                           const std::string& run_dir) {
  METS_RETURN_IF_ERROR(ValidateJobName(options.job));
  StopWatch::BlockSignals();
  METS_ASSIGN_OR_RETURN(AdminClient client, AdminClient::Connect(run_dir));
  std::unique_ptr<AdminClient::RecordStream> stream =
      client.RecordJob(options.job, options.device);
  METS_ASSIGN_OR_RETURN(
      std::unique_ptr<StopWatch> watch,
      StopWatch::Start(options.limit, [&stream] { stream->Stop(); }));
  // The file is touched only when there is something to record.
  std::string text;
  std::unique_ptr<Recording> recording;
  absl::Status written;
  while (written.ok() && stream->Read(&text)) {
    if (recording == nullptr) {
      absl::StatusOr<std::unique_ptr<trace::TextFileWriter>> file =
          trace::TextFileWriter::Create(options.file);
      written = file.status();
      if (!file.ok()) break;
      if (options.limit == absl::InfiniteDuration()) {
        std::fprintf(stderr, "recording '%s' until it ends, or Ctrl-C\n",
                     options.job.c_str());
      }
      recording = std::make_unique<Recording>(*std::move(file));
    }
    written = recording->Append(text);
  }
  if (!written.ok()) stream->Cancel();
  const bool stopped = stream->stopped();
  watch = nullptr;
  const absl::Status status = stream->Finish();
  METS_RETURN_IF_ERROR(written);
  const bool job_gone = absl::IsAborted(status);
  if (recording == nullptr) {
    return status.ok() ? absl::UnavailableError("the job has sent nothing")
                       : status;
  }
  if (!status.ok() && !job_gone) return status;
  METS_RETURN_IF_ERROR(recording->Close());
  Print(options, *recording, job_gone || !stopped);
  return absl::OkStatus();
}

}  // namespace mets::ctl
