#include "common/trace/trace_reader.h"

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "common/trace/text_file.h"
#include "common/trace/trace_parser.h"

namespace mets::trace {
namespace {

constexpr size_t kLongestJobName = 63;

// "dir/my vgg.csv.xz" → "my_vgg".
std::string JobOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash != absl::string_view::npos) path.remove_prefix(slash + 1);
  std::string name(absl::StripSuffix(absl::StripSuffix(path, ".xz"), ".csv")
                       .substr(0, kLongestJobName));
  for (char& c : name) {
    if (!ValidateJobName(absl::string_view(&c, 1)).ok()) c = '_';
  }
  return name.empty() ? "_" : name;
}

}  // namespace

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  TraceParser parser(path, JobOf(path));
  METS_ASSIGN_OR_RETURN(const bool complete,
                        ReadLines(path, [&](absl::string_view line) {
                          return parser.Parse(line);
                        }));
  return parser.Finish(complete);
}

}  // namespace mets::trace
