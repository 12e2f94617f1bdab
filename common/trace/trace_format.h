// The text form of traces (docs/trace_format.md), one line at a time.
#ifndef METS_COMMON_TRACE_TRACE_FORMAT_H_
#define METS_COMMON_TRACE_TRACE_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/trace/trace.h"

namespace mets::trace {

inline constexpr int kFormatVersion = 1;
// Starts of the lines that are no events.
inline constexpr absl::string_view kMagic = "# mets-trace ";
inline constexpr absl::string_view kEndMark = "# end ";
inline constexpr absl::string_view kErrorMark = "# error ";
// Column lines: of METS's traces, and of those of other tools.
inline constexpr absl::string_view kColumns = "t_us,op,block,bytes,name";
inline constexpr absl::string_view kPlainColumns = "t_us,op,block,bytes";

// "malloc" and so on, as the column `op` has it.
absl::string_view KindText(EventKind kind);
std::optional<EventKind> ParseKind(absl::string_view text);

// The first two lines. REQUIRES: `job` is a job name.
std::string FormatHeader(absl::string_view job);
// Appends an event's line. Times are cut to nanoseconds. In `name`, what the
// format cannot hold (commas, control characters) becomes '_'.
void AppendEvent(absl::Duration time, EventKind kind, uint64_t id, Bytes bytes,
                 absl::string_view name, std::string* out);
// The last line of a complete trace.
std::string FormatEnd(uint64_t events);
// The last line of a trace that ended by an error.
std::string FormatError(absl::string_view why);

}  // namespace mets::trace

#endif  // METS_COMMON_TRACE_TRACE_FORMAT_H_
