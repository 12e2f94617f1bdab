#include "common/trace/trace_reader.h"

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/trace/text_file.h"
#include "common/trace/trace_parser.h"

namespace mets::trace {
namespace {

// "dir/vgg.csv.xz" → "vgg".
std::string JobOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash != absl::string_view::npos) path.remove_prefix(slash + 1);
  return std::string(absl::StripSuffix(absl::StripSuffix(path, ".xz"), ".csv"));
}

}  // namespace

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  METS_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  TraceParser parser(path, JobOf(path));
  absl::string_view rest = text;
  for (;;) {
    const size_t end = rest.find('\n');
    if (end == absl::string_view::npos) break;
    METS_RETURN_IF_ERROR(parser.Parse(rest.substr(0, end)));
    rest.remove_prefix(end + 1);
  }
  return parser.Finish(rest.empty());
}

}  // namespace mets::trace
