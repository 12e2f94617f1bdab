#include "client/src/record_file.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"

namespace mets::client {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<RecordFile>> RecordFile::Open(
    const std::string& path, Recorder& recorder) {
  METS_ASSIGN_OR_RETURN(std::unique_ptr<trace::TextFileWriter> file,
                        trace::TextFileWriter::Create(path));
  return absl::WrapUnique(new RecordFile(std::move(file), recorder));
}

RecordFile::RecordFile(std::unique_ptr<trace::TextFileWriter> file,
                       Recorder& recorder)
    : recorder_(recorder), file_(std::move(file)), thread_([this] { Run(); }) {}

RecordFile::~RecordFile() { (void)Finish(); }

absl::Status RecordFile::Finish() {
  recorder_.Stop();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  return status_;
}

absl::Status RecordFile::WriteAll(bool* last) {
  Recorder::Part part;
  do {
    part = recorder_.Take();
    METS_RETURN_IF_ERROR(file_->Append(part.text));
  } while (!part.last && !part.text.empty());
  *last = part.last;
  if (!part.last) return absl::OkStatus();
  METS_RETURN_IF_ERROR(file_->Close());
  return part.error.empty() ? absl::OkStatus()
                            : absl::DataLossError(part.error);
}

void RecordFile::Run() {
  bool last = false;
  while (!last && status_.ok()) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kPeriod);
    }
    status_ = WriteAll(&last);
  }
  if (last) return;
  recorder_.Fail(status_.message());
  while (!recorder_.Take().last) {
  }
}

}  // namespace mets::client
