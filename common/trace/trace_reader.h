// Reading traces from files (docs/trace_format.md).
#ifndef METS_COMMON_TRACE_TRACE_READER_H_
#define METS_COMMON_TRACE_TRACE_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/trace/trace.h"

namespace mets::trace {

// Reads and checks a trace that METS has recorded, or an allocation trace of
// another tool (columns t_us,op,block,bytes; no ops; the job is named after the
// file, with '_' for what no job's name holds). A name that ends in ".xz" is
// decompressed.
//
// Errors name file and line, what is wrong and what was expected:
// INVALID_ARGUMENT for what cannot be a trace, DATA_LOSS for one that is cut,
// damaged or was ended by an error of the recording, NOT_FOUND and
// PERMISSION_DENIED for the file.
absl::StatusOr<Trace> ReadTrace(const std::string& path);

}  // namespace mets::trace

#endif  // METS_COMMON_TRACE_TRACE_READER_H_
