// A job's limit, as it is typed.
#ifndef METS_CLIENT_CTL_LIMIT_SIZE_H_
#define METS_CLIENT_CTL_LIMIT_SIZE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/status_macros.h"

namespace mets::ctl {

// Refuses what nobody means: "10" is 10 bytes, which ends the job at its next
// op, and "0" is no limit at all.
inline absl::StatusOr<Bytes> ParseLimit(const std::string& text) {
  METS_ASSIGN_OR_RETURN(const Bytes limit, ParseBytes(text));
  if (limit >= MiB(1)) return limit;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is a limit of ", FormatBytes(limit),
      ", with which no job runs; at least 1 MiB is needed, and a unit, such as "
      "'10GiB'"));
}

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_LIMIT_SIZE_H_
