#include "common/trace/trace_writer.h"

#include <memory>

#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "common/trace/text_file.h"
#include "common/trace/trace_format.h"

namespace mets::trace {
namespace {

constexpr size_t kWriteBlock = 256 << 10;

}  // namespace

absl::Status WriteTrace(const std::string& path, const Trace& trace) {
  METS_RETURN_IF_ERROR(ValidateJobName(trace.job));
  METS_ASSIGN_OR_RETURN(std::unique_ptr<TextFileWriter> file,
                        TextFileWriter::Create(path));
  std::string block = FormatHeader(trace.job);
  for (const Event& event : trace.events) {
    AppendEvent(event.time, event.kind, event.id, event.bytes,
                trace.names[event.name], &block);
    if (block.size() < kWriteBlock) continue;
    METS_RETURN_IF_ERROR(file->Append(block));
    block.clear();
  }
  block += FormatEnd(trace.events.size());
  METS_RETURN_IF_ERROR(file->Append(block));
  return file->Close();
}

}  // namespace mets::trace
