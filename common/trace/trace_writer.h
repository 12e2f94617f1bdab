// Writing traces to files (docs/trace_format.md).
#ifndef METS_COMMON_TRACE_TRACE_WRITER_H_
#define METS_COMMON_TRACE_TRACE_WRITER_H_

#include <string>

#include "absl/status/status.h"
#include "common/trace/trace.h"

namespace mets::trace {

// Writes a trace in METS's format, compressed when the name ends in ".xz".
// INVALID_ARGUMENT when its job is no job name; else as TextFileWriter.
// Whether the events make sense is the reader's question.
absl::Status WriteTrace(const std::string& path, const Trace& trace);

}  // namespace mets::trace

#endif  // METS_COMMON_TRACE_TRACE_WRITER_H_
